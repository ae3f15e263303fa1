"""The lowest releases that pyproject.toml allows to users, as constraints for pip."""

import re
import tomllib
from pathlib import Path

TOOLS = ("test", "dev")  # extras for development, where the newest releases will do


def lowest_releases(project):
    """Return each requirement with the one release that its lower bound names.

    >>> lowest_releases({"dependencies": ["click>=8.1", "psycopg[binary]>=3.1.4"]})
    ['click==8.1', 'psycopg==3.1.4']
    """
    extras = project.get("optional-dependencies", {})
    own = [needed for name, needed in extras.items() if name not in TOOLS]
    requirements = [*project["dependencies"], *(each for needed in own for each in needed)]
    return [re.sub(r"\[.*?\]", "", each).replace(">=", "==") for each in requirements]


if __name__ == "__main__":
    described = Path(__file__).parents[1] / "pyproject.toml"
    print(*lowest_releases(tomllib.loads(described.read_text("utf-8"))["project"]), sep="\n")
