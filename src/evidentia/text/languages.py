"""In which language a text is written, by its script and its commonest words. Refuses to guess: what is undecided stays so.

No model and nothing to download: a script that one language uses decides by itself, and where several share one, the words do that
every sentence of a language is made of. A word counts the less, the more languages have it. All of it is counted in integers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

SAMPLE_CHARS: Final = (200, 2_000)
"""So much of the beginning is read, and more where that does not decide."""
_WEIGHT: Final = 60
_LEAST: Final = 90
"""Less than one word and a half that only one language has is no evidence."""
_SURE: Final = 3 * _WEIGHT
"""With this much, reading on would change nothing."""
_MARGIN_PERCENT: Final = 115
"""How far the best has to be ahead of the next."""
_SHARE: Final = 20
"""One word in so many has to speak for the language."""

_FUNCTION_WORDS: Final = {
    "en": "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which you were "
    "their been has will would there we when who can its how what does do if your our than may should these about into",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach "
    "wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde wir "
    "ich kann",
    "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont avec aux son ses cette ou mais "
    "comme nous vous être leur elle été fait ont deux ces sans je tout même peut si d l qu c n s j y",
    "es": "de la que el en y a los del se las por un para con no una su al es lo como más o pero sus le ha me si sin sobre este entre "
    "ya cuando todo esta ser son dos también fue había muy hasta desde está porque él ella nos donde puede",
    "pt": "de que e o a do da em um para com não uma os no se na por mais as dos como mas foi ao ele das à seu sua ou quando muito nos "
    "já está eu também só pelo pela até isso ela entre era depois sem mesmo aos ser são você têm pode",
    "it": "di e che la il un a per è in una non sono del con i da si le dei della alla come nel più ma al anche lo gli ha delle su "
    "nella questo ci o se quando essere tra dal dalla degli cui stato loro era ed suo sua può ai l d all dell",
    "nl": "de het een van en in is dat op te zijn voor met die niet aan er om ook als dan maar bij uit door naar nog wel worden over "
    "heeft tot werd hij ze wordt kan deze hebben dit hun al was meer wat zich of we geen ik je u",
    "sv": "och i att en som det av på är för med den till inte om ett han de var har jag från vi så kan men sig hade där eller vid ska "
    "när också under nu man efter mot hans sin blev vad över skulle detta bara",
    "da": "og i at en det der til er af på for som med de den ikke et har han var om fra jeg kan så sig men skal vi ved blev efter også "
    "hun eller over vil havde nu hvor man kun op være hvad mere bliver deres meget",
    "no": "og i det er på en til som for av at med de ikke den har et han om fra jeg var kan så men seg vi hun skal ble også etter "
    "eller ved sin vil når være hvor da blir bare hva mot mer mye noe nå opp ut",
    "fi": "ja on ei se että oli hän mutta ovat kun niin myös joka tai sen kuin olla jos voi ole vain jo nyt sitä mukaan vielä sekä "
    "hänen jotka mitä ne tämä tämän ollut olisi koko siitä kanssa kuitenkin minä me",
    "pl": "w i na z się do nie że to jest o jak ale po za od przez co dla tak są przy oraz czy jego już był może także tylko ich być "
    "które który tym lub było jej ma pod bez tego będzie więc była jako",
    "cs": "a v se na je že s z do o to i ve jsem jako pro k po ale za by si které od jeho jsou ze který také než jen už při byl aby "
    "nebo ke jak bude podle být před bylo má však co tak když roku může",
    "sk": "a v sa na je že s z do o to aj vo si ako pre k po ale za by ktoré od jeho sú zo ktorý tiež než len už pri bol aby alebo ku "
    "bude podľa byť pred bolo má však čo tak keď môže som nie",
    "hu": "a az és hogy nem is egy van meg ez csak de ha volt már mint el még vagy azt ki minden fel lehet után kell pedig be le ezt "
    "akkor majd úgy arra több amely itt ami én át szerint",
    "ro": "și de în a la cu că nu o un pe din care să se pentru mai este au fost sunt dar ce ca al prin sau lui după până cel această "
    "fi ale ei fie avea între sa ai cum acest doar şi dintre era poate unei",
    "tr": "ve bir bu da de için ile çok daha olarak en gibi olan ne o kadar sonra ama var değil her ise ya ki mi göre diye hem olduğu "
    "tarafından üzere veya ancak ben biz onun şey nasıl bütün yeni bile",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena oleh ada adalah bisa mereka sudah atau "
    "seperti telah dapat lebih kita kami saat hanya tersebut banyak bagi anda para secara sebagai",
    "vi": "và của là có được cho không trong một với các người này những đã khi để từ đến như cũng vào ra về tại nhiều trên theo đó "
    "phải làm nhưng sẽ nên vì còn bị thì sự",
    "ca": "de la i el que a en un les els del per amb una és al no es com més va ha seva dels són també però o si aquest aquesta entre "
    "fins dins ser molt han sobre perquè quan li seu tot d l s n",
    "hr": "i u je da na se za su od s a kako koji to o ne što sa bi iz ili te ali već koje kao biti do samo nije može sam će po bio pa "
    "jer nakon prema zbog smo godine koja njegov",
    "sl": "in je v se da na za so ki z pa tudi po s ne bi kot od bo pri ali še o do iz ker ni tako bil kar to bila jih lahko med več ga "
    "le sem sta ima mi kako naj smo zelo",
    "et": "ja on ei et see oli ka kui mis oma aga ta ning siis nii või veel olid seda kes välja mitte üle selle olla ma mida peab kõik "
    "juba pole pärast ole kuid nad sest väga meie vaid",
    "lv": "un ir ar par no ka uz tas kā arī bet lai pie tika viņš šo tā kas nav vai pēc vēl jau to bija līdz ja tikai kur tad gan savu "
    "būs es šī kad ko vairāk latvijas",
    "lt": "ir kad į yra su iš tai kaip bet jis buvo ne apie tik per dar o jo dėl už taip jau nuo jų ar ji nėra pat po iki kurie gali "
    "labai šio savo bus mes prie",
    "ru": "и в не на что я с он как это по но из у за то все так его от они мы для же вы бы о к было был или при только если еще уже "
    "когда этом может есть чтобы она",
    "uk": "і в не на що з у до як це за та по але від він про або для його є вони ми й було ще так при вже який тільки якщо ви бути "
    "може її цього під були щоб також",
    "bg": "и на да в се за от не са че с по като е който ще към до това си или но при след може също има бе те ли във му само през "
    "която което около още беше бяха",
    "sr": "и у је да на се за су од са а који то о не што би из или као до само није може ће по био јер после него које ово још све",
    "ar": "في من على إلى أن عن هذا التي مع لا ما هو كان الذي هذه كل بعد أو قد ذلك بين لم وقد كما قال هي وفي وهو كانت ان حيث",
    "fa": "و در به از که این را با است برای آن یک خود تا می بر شد شده هم اما کرد باید یا ها کند بود نیز وی ما هر",
    "ur": "کے میں کی ہے اور سے کا کو اس نے پر کہ ہیں یہ نہیں بھی تو کر ایک تھا گیا جو ہو وہ لیے تھے ان کیا",
    "hi": "के में की है और से का को हैं पर ने यह कि नहीं भी एक इस था हो कर तो लिए जो किया गया थे ही वह",
    "ne": "र छ को मा का ले पनि हो यो गरेको भने एक लागि हुने गर्न छन् थियो गरी तथा भएको नेपाल हरू",
    "mr": "आणि किंवा त्याच्या असेल आहे या व ते की हे तर होते आहेत नाही होता हा त्या मी असे एक ही केली यांनी करून झाली",
}
_SCRIPTS: Final = {
    "ja": "\u3040-\u30ff",
    "ko": "\uac00-\ud7af\u1100-\u11ff",
    "zh": "\u4e00-\u9fff\u3400-\u4dbf",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    "th": "\u0e00-\u0e7f",
    "ta": "\u0b80-\u0bff",
    "bn": "\u0980-\u09ff",
    "hy": "\u0530-\u058f",
    "ka": "\u10a0-\u10ff",
}
"""Scripts that tell a language by themselves."""
_OF_ONE_LANGUAGE: Final = {language: re.compile(f"[{ranges}]") for language, ranges in _SCRIPTS.items()}
_WORD: Final = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0900-\u0903\u093a-\u094f]+[^\W\d_]*)*")


def language_of(text: str, *, otherwise: str) -> str:
    """Return the ISO 639-1 code of the language that the beginning of a text is in, or `otherwise` where that cannot be told."""
    for chars in SAMPLE_CHARS:
        sample = text[:chars]
        if not sample.isascii():
            sample = unicodedata.normalize("NFC", sample)
        found = ("" if sample.isascii() else _by_script(sample)) or _by_words(
            sample, least=_LEAST if chars == SAMPLE_CHARS[-1] or len(text) <= chars else _SURE
        )
        if found:
            return found
        if len(text) <= chars:
            break
    return otherwise


def _by_script(sample: str) -> str:
    """Return the language of a script that most of the letters are in; where there is Kana among Han, that is Japanese."""
    counts = {language: len(letters.findall(sample)) for language, letters in _OF_ONE_LANGUAGE.items()}
    kana, han = counts["ja"], counts["zh"]
    if kana + han and 10 * kana >= han:
        counts["ja"], counts["zh"] = kana + han, 0
    best = max(counts, key=counts.__getitem__)
    return best if 2 * counts[best] > sum(map(str.isalpha, sample)) else ""


def _by_words(sample: str, *, least: int) -> str:
    """Return the language whose words a text is made of, if it is far enough ahead of the next."""
    words = sample.lower().split() if sample.isascii() else _WORD.findall(sample.lower())
    known = _languages_of_words()
    votes: dict[str, int] = {}
    for word in words:
        for language, weight in known.get(word, ()):
            votes[language] = votes.get(language, 0) + weight
    best = max(sorted(votes), key=votes.__getitem__, default="")
    most = votes.pop(best, 0)
    is_clear = most >= max(least, len(words) * _WEIGHT // _SHARE) and 100 * most >= _MARGIN_PERCENT * max(votes.values(), default=0)
    return best if is_clear else ""


@lru_cache(maxsize=1)
def _languages_of_words() -> dict[str, tuple[tuple[str, int], ...]]:
    """Return for each word the languages that have it, and what it counts for each of them."""
    languages: dict[str, set[str]] = {}
    for language, words in _FUNCTION_WORDS.items():
        for word in words.split():
            languages.setdefault(word, set()).add(language)
    return {word: tuple((language, _WEIGHT // len(have)) for language in sorted(have)) for word, have in languages.items()}
