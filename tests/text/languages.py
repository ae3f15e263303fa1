"""A sentence in many languages: Article 1 of the Universal Declaration of Human Rights."""

SENTENCES = {
    "English": (
        "All human beings are born free and equal in dignity and rights. They are endowed with"
        " reason and conscience and should act towards one another in a spirit of brotherhood."
    ),
    "Arabic": (
        "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلًا وضميرًا وعليهم أن"
        " يعامل بعضهم بعضًا بروح الإخاء."
    ),
    "Bulgarian": (
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум"
        " и съвест и следва да се отнасят помежду си в дух на братство."
    ),
    "Catalan": (
        "Tots els éssers humans neixen lliures i iguals en dignitat i en drets. Són dotats de "
        "raó i de consciència, i han de comportar-se fraternalment els uns amb els altres."
    ),
    "Chinese": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。",
    "Czech": (
        "Všichni lidé se rodí svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni "
        "rozumem a svědomím a mají spolu jednat v duchu bratrství."
    ),
    "Dutch": (
        "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn "
        "begiftigd met verstand en geweten, en behoren zich jegens elkander in een geest van "
        "broederschap te gedragen."
    ),
    "Estonian": (
        "Kõik inimesed sünnivad vabadena ja võrdsetena oma väärikuselt ja õigustelt. Neile on "
        "antud mõistus ja südametunnistus ja nende suhtumist üksteisesse peab kandma vendluse "
        "vaim."
    ),
    "Finnish": (
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille "
        "on annettu järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden "
        "hengessä."
    ),
    "French": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont "
        "doués de raison et de conscience et doivent agir les uns envers les autres dans un "
        "esprit de fraternité."
    ),
    "German": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit "
        "Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit "
        "begegnen."
    ),
    "Greek": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. "
        "Είναι προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ "
        "τους με πνεύμα αδελφοσύνης."
    ),
    "Hebrew": (
        "כל בני אדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך"
        " חובה עליהם לנהוג איש ברעהו ברוח של אחווה."
    ),
    "Hindi": ("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।"),
    "Hungarian": (
        "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, "
        "ésszel és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy "
        "viseltessenek."
    ),
    "Indonesian": (
        "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka "
        "dikaruniai akal dan hati nurani dan hendaknya bergaul satu sama lain dalam semangat "
        "persaudaraan."
    ),
    "Italian": (
        "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono "
        "dotati di ragione e di coscienza e devono agire gli uni verso gli altri in spirito di"
        " fratellanza."
    ),
    "Japanese": "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。",
    "Korean": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "Lithuanian": (
        "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir "
        "sąžinė ir jie turi elgtis vienas kito atžvilgiu kaip broliai."
    ),
    "Norwegian": (
        "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter. De er "
        "utstyrt med fornuft og samvittighet og bør ikke handle mot hverandre uten brorskapets"
        " ånd."
    ),
    "Polish": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są "
        "oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu "
        "braterstwa."
    ),
    "Portuguese": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de "
        "razão e de consciência, devem agir uns para com os outros em espírito de "
        "fraternidade."
    ),
    "Romanian": (
        "Toate ființele umane se nasc libere și egale în demnitate și în drepturi. Ele sunt "
        "înzestrate cu rațiune și conștiință și trebuie să se comporte unele față de altele în"
        " spiritul fraternității."
    ),
    "Russian": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены "
        "разумом и совестью и должны поступать в отношении друг друга в духе братства."
    ),
    "Spanish": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como"
        " están de razón y conciencia, deben comportarse fraternalmente los unos con los "
        "otros."
    ),
    "Swedish": (
        "Alla människor är födda fria och lika i värde och rättigheter. De har utrustats med "
        "förnuft och samvete och bör handla gentemot varandra i en anda av gemenskap."
    ),
    "Turkish": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana "
        "sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler."
    ),
}
