"""Table 4 and Figure 2 of Kazawa et al. 2004 [2] next to ours."""

import numpy as np
from common import markdown

SETS = ("arts", "business", "education", "health", "reference", "science")
TABLE_4 = {  # samples F1, subset accuracy and macro F1
    "MD": (
        (0.55, 0.80, 0.56, 0.74, 0.67, 0.61),
        (0.44, 0.63, 0.45, 0.58, 0.60, 0.52),
        (0.30, 0.25, 0.25, 0.35, 0.29, 0.37),
    ),
    "MC": (
        (0.44, 0.81, 0.43, 0.74, 0.58, 0.54),
        (0.32, 0.62, 0.34, 0.53, 0.51, 0.43),
        (0.26, 0.27, 0.23, 0.35, 0.25, 0.35),
    ),
    "PM": (
        (0.50, 0.75, 0.51, 0.66, 0.63, 0.52),
        (0.21, 0.48, 0.19, 0.34, 0.39, 0.22),
        (0.24, 0.20, 0.21, 0.23, 0.24, 0.28),
    ),
    "SV": (
        (0.46, 0.76, 0.48, 0.67, 0.56, 0.47),
        (0.29, 0.57, 0.30, 0.47, 0.49, 0.36),
        (0.29, 0.29, 0.25, 0.35, 0.25, 0.31),
    ),
    "BO": (
        (0.38, 0.75, 0.37, 0.60, 0.50, 0.39),
        (0.22, 0.53, 0.23, 0.39, 0.41, 0.28),
        (0.22, 0.20, 0.16, 0.26, 0.16, 0.19),
    ),
}
MEASURES = ("Samples F1", "Subset accuracy", "Macro F1")
VARIANTS = {  # the nearest to a paper's method
    "MD": "tfidf",
    "MC": "tfidf, answer",
    "PM": "PMM1",
    "SV": "tf, C 1, J balanced",
    "BO": "above 0",
}
NEAR = 0.03  # within which a number counts as reproduced


def figures(found, method, name, n_train, variant):
    """Return the figures of a variant, (n_splits, 4): three measures, and labels per page."""
    job = "PMM1" if method == "PM" else method
    splits = [k for k in found if k[:3] == (job, name, n_train) and variant in found[k]]
    return np.array([found[k][variant] for k in splits]).reshape(-1, 4)


def variants(found, method):
    """Return the names of a method's variants."""
    job = "PMM1" if method == "PM" else method
    return list(dict.fromkeys(name for k in found if k[0] == job for name in found[k]))


def with_paper(own, number, digits):
    """Return the mean over splits with a paper's number, bold where they are not near."""
    if not own.size:
        return f"– ({number:.{digits}f})"
    text = f"{own.mean():.3f} ({number:.{digits}f})"
    return text if abs(round(own.mean(), 3) - number) <= NEAR + 1e-9 else f"**{text}**"


def table(found, paper, n_train, place, digits):
    """Print a metric of methods next to a paper's, and the standard deviations over splits."""
    rows, widths = [], {method: [] for method in paper}
    for k, name in enumerate(SETS):
        row = [name]
        for method, numbers in paper.items():
            own = figures(found, method, name, n_train, VARIANTS[method])[:, place]
            row.append(with_paper(own, numbers[k], digits))
            widths[method].append(own.std() if own.size else np.nan)
        rows.append(row)
    markdown(["set", *paper], rows)
    ranges = (f"{m} {min(values):.3f} to {max(values):.3f}" for m, values in widths.items())
    print(f"\nstandard deviations: {', '.join(ranges)}")


def distances(found, method, n_train, paper):
    """Print how far each variant of a method is from a paper: mean, and the largest distance."""
    rows = []
    for variant in variants(found, method):
        own = [figures(found, method, name, n_train, variant) for name in SETS]
        if all(values.size for values in own):
            means = np.array([values.mean(axis=0) for values in own])
            row = [variant]
            for place, numbers in enumerate(paper):
                away = means[:, place] - np.array(numbers)
                row += [f"{means[:, place].mean():.3f}", f"{away.mean():+.3f}"]
                row += [f"{np.abs(away).max():.3f}"]
            rows.append([*row, f"{means[:, 3].mean():.2f}"])
    heads = [w for m in MEASURES[: len(paper)] for w in (m, "mean distance", "largest")]
    markdown(["variant", *heads, "labels"], rows)


def curves(found):
    """Return the mean over sets of each method's measures by the number of training pages."""
    sizes = sorted({key[2] for key in found if key[0] == "MD"})
    lines = {}
    for method in TABLE_4:
        own = [[figures(found, method, s, n, VARIANTS[method]) for s in SETS] for n in sizes]
        lines[method] = [
            np.mean([values.mean(axis=0) for values in row], axis=0)[:3]
            if all(values.size for values in row)
            else np.full(3, np.nan)
            for row in own
        ]
    return sizes, {method: np.array(rows) for method, rows in lines.items()}


def draw(path, sizes, lines):
    """Draw learning curves, with the numbers of [2] for 2000 pages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    for place, axes in enumerate(figure.subplots(1, 3)):
        for (method, rows), mark in zip(lines.items(), "osv^D", strict=True):
            line = axes.plot(sizes, rows[:, place], marker=mark, label=method, linewidth=1.3)[0]
            paper = np.mean(TABLE_4[method][place])
            axes.plot(2080, paper, marker="_", color=line.get_color(), markersize=14, mew=2)
        axes.set(title=MEASURES[place], xlabel="pages to learn from", xticks=sizes)
        axes.tick_params(axis="x", labelsize="small")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    figure.savefig(path, dpi=130)


def show(found, figure):
    """Print all tables, and draw the figure if a path is given."""
    print("\n[2], Table 4")
    for place, measure in enumerate(MEASURES):
        print(f"\n{measure}:\n")
        table(found, {m: numbers[place] for m, numbers in TABLE_4.items()}, 2000, place, 2)
    for method, paper in TABLE_4.items():
        print(f"\n{method}, as shown: {VARIANTS[method]}\n")
        distances(found, method, 2000, paper)
    print("\nMC, as shown, but:\n")
    distances(found, "MCs", 2000, TABLE_4["MC"])
    sizes, lines = curves(found)
    for place, measure in enumerate(MEASURES):
        print(f"\n[2], Figure 2: {measure}\n")
        rows = [(m, *(f"{x:.3f}" for x in rows[:, place])) for m, rows in lines.items()]
        markdown(["method", *map(str, sizes)], rows)
    print()
    for job in dict.fromkeys(key[0] for key in found):
        own = [key for key in found if key[0] == job]
        n_splits = {n: max(k[3] for k in own if k[2] == n) + 1 for n in {k[2] for k in own}}
        print(f"{job}: splits by pages to learn from: {dict(sorted(n_splits.items()))}")
    if figure:
        draw(figure, sizes, lines)
