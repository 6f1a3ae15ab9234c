"""Wording that marks a sentence: as a goal, a constraint, a decision, a task or an open question.

Lists of forms, English first, with the commonest of French, German, Spanish, Portuguese, Italian, Chinese and
Japanese. They are kept narrow: a false cue costs room in every context, a missed one is still in the transcript and
in the prose.

The patterns are written in lower case and expect a text from `lowered`: matching so takes half the time of ignoring
case.
"""

from __future__ import annotations

import re


def lowered(text: str) -> str:
    """`text` in lower case with every character in its place; as it is where lower case has another length."""
    low = text.lower()
    return low if len(low) == len(text) else text


def word_set(text: str, between: str | None = None) -> frozenset[str]:
    """The words of a list that stands in one text, between blanks or another mark."""
    return frozenset(text.split(between))


_NOT_OBLIGED = r"(?:you|it|that|this|they|he|she|there|i|we|life|things?)"

GOAL = re.compile(
    r"\b(?:(?:can|could|would|will) you(?: please)?(?: help)?\b|please (?!note|don|do not|never|keep"
    r"|let me know)\w+|help me\b"
    r"|i(?: would|'d|\u2019d)? (?:want|need|like|love) (?:you |us )?to\b|i(?:'m|\u2019m| am) (?:trying|looking"
    r"|planning|working|hoping|building) (?:to|for|on|a)\b"
    r"|(?:my|our|the) (?:goal|aim|task|objective|mission|purpose) (?:is|here is|:)|we (?:need|want|have) to\b"
    r"|(?:je veux|je voudrais|j'aimerais|peux-tu|pouvez-vous|aide-moi|il faudrait)|(?:ich (?:will|m\u00f6chte"
    r"|brauche)|kannst du|k\u00f6nnen sie|bitte)\b"
    r"|(?:quiero|necesito|puedes|podr\u00edas|ay\u00fadame|quero|preciso|voc\u00ea pode|vorrei|puoi|aiutami)\b)"
    r"|\u8bf7|\u6211\u60f3|\u5e2e\u6211|\u9700\u8981\u4f60|\u3066\u304f\u3060\u3055\u3044|\u3057\u305f\u3044"
)
IMPERATIVE = re.compile(
    r"(?:add|analy[sz]e|build|change|check|clean|compare|convert|create|debug|deploy|describe|design|develop"
    r"|draft|explain|extract|find|fix"
    r"|generate|give|implement|improve|investigate|list|look|make|migrate|move|optimi[sz]e|plan|port|prepare|read"
    r"|refactor|remove"
    r"|rename|replace|research|review|rewrite|run|set up|solve|summari[sz]e|test|translate|update|upgrade|use"
    r"|verify|write)\b"
)
CONSTRAINT = re.compile(
    rf"(?<!\w)(?:(?<!\b(?:you|hey) ){_NOT_OBLIGED}? ?(?:must not|mustn['\u2019]t)\b"
    rf"|(?<!\w)(?!{_NOT_OBLIGED} must)[\w)`'\"-]{{1,40}} must (?!have\b|love|really|feel|bring|be (?:a|an|so|very"
    rf"|really|quite|pretty|such|nice|great|good|hard|tough|fun|awesome|amazing|wonderful|exciting|incredible|fulfilling"
    rf"|frustrating|rewarding|the)\b|for\b)\w+"
    rf"|(?:we|you|it|they|i) must (?!have\b|be\b|admit|say|confess|feel|know|love|really|miss|enjoy)\w+"
    r"|(?<!\bone )(?:should|shall) (?:never|always|only)|(?:may|can) (?:only|not exceed)\b"
    r"|(?:need|has|have)s? to (?:always"
    r"|never|stay|remain|be (?:under|below|at least|at most|within|compatible))\b"
    r"|(?:can(?:not|['\u2019]t)|may not|must not) (?:exceed|change|touch|modify|be (?:changed|modified|exposed"
    r"|shared|used|stored|more|less))\b"
    r"|(?:is|are) (?:not allowed|forbidden|off limits|prohibited|mandatory)\b"
    r"|(?:at most|no more than|not more than|no (?:less|fewer) than|a maximum of|a minimum of|not exceed(?:ing)?"
    r"|capped at|limited to)[\s:]+[$\u20ac\u00a3]?(?:\d|one|two|three|four|five|ten)"
    r"|(?:hard )?(?:requirement|constraint|rule|deadline)s?(?: is|:)"
    r"|under no circumstances"
    r"|ne (?:doi(?:t|vent)|faut) (?:pas|jamais)|il (?:ne )?faut (?:pas|absolument|toujours|jamais)|(?:darf"
    r"|d\u00fcrfen) (?:nicht|kein|nie)\w*|muss (?:immer|unbedingt|mindestens)"
    r"|no (?:debe|deben|puede usar)|siempre debe|nunca debe|n\u00e3o (?:deve|pode)|non deve)\b"
    r"|\u5fc5\u987b|\u4e0d\u5f97|\u7981\u6b62|\u52a1\u5fc5|\u6700\u591a|\u81f3\u5c11"
    r"|\u3057\u3066\u306f\u3044\u3051|\u5fc5\u305a"
)
ORDER = re.compile(
    r"(?:please |and |but |also |so |remember:? |important:? |note:? |from now on,? |always remember:? ){0,6}"
    r"(?:never (?!mind|thought|been|knew|seen|had|heard|did|got|gonna|in my)\w+|always (?!great|good|nice|happy"
    r"|love|a |so |fun|been|wanted|here|there|nice|up|down|inspiring|amazing)\w+"
    r"|(?:do not|don['\u2019]t) (?!worry|forget|hesitate|know|think|mind|get me|be (?:shy|so|too|sad|afraid)|you"
    r"|give up|let (?:it|them|that|anyone)|stress|mention|we|i |quit|miss|get (?:discouraged|down)|understand|see"
    r"|sweat|be a stranger)\w+"
    r"|only (?:use|call|touch|change|edit|write|return|reply|answer|include|allow|support)\b|avoid \w+"
    r"|make sure (?!you (?:have fun|enjoy|take care))\w+|ensure \w+|stick to \w+|use only\b"
    r"|n[e'] ?\w{1,30} (?:pas|jamais)\b|niemals \w+|nunca \w+|jamais \w+)"
    r"|\u4e0d\u8981|\u522b"
)
DECISION = re.compile(
    r"\b(?:(?:we|i|they|he|she|team|everyone|board|council|committee)(?:['\u2019]ve| have| has"
    r"|['\u2019]s)?(?: all| both| finally| now| just| already| also)? (?:decided|agreed|settled|chosen|opted"
    r"|went with|voted|resolved|approved|signed off)\b"
    r"(?! with you| to disagree)|let['\u2019]?s (?:go with|use|stick (?:to|with)|switch|drop|keep (?:the|it|to"
    r"|using|our)|adopt|settle|skip|postpone|not)\b|(?:final )?decision(?: is|:| was)|(?:is|was|been"
    r"|are) (?:decided|agreed|approved)\b"
    r"|(?:i|we)(?:['\u2019]ll| will|['\u2019]re| are|['\u2019]m| am) (?:going with|go with|going for (?:the|a)"
    r"|stick(?:ing)? with|switch(?:ing)? to|dropping|use)\b|made up (?:my|our) minds?\b"
    r"|(?:chose|choose|picked|prefer|preferred|selected) [\w .'-]{1,40} (?:over|instead of|rather than) \w+"
    r"|agreed:|verdict:|(?:we|i)(?:['\u2019]re| are|['\u2019]m| am) going ahead with"
    r"|(?:that|it)(?:['\u2019]s| is) settled"
    r"|(?:i|we)(?:['\u2019]d| would) rather (?:have|use|take|keep|go with)|vote(?:d|s)? (?:went to|fell on|for|against)"
    r"|^(?:fine|okay|ok|right|alright|so)[,:]? [\w .'-]{1,40} it is\b"
    r"|(?:nous avons|on a|j'ai) d\u00e9cid\u00e9|on part sur|(?:haben|habe|hat) (?:uns |mich "
    r"|sich )?(?:\w+ ){0,6}(?:entschieden|beschlossen|geeinigt)|(?:hemos |he )?decidi(?:do|mos|d\u00ed)|decidimos"
    r"|abbiamo deciso|nos quedamos con)"
    r"|\u51b3\u5b9a|\u786e\u5b9a\u4f7f\u7528|\u6c7a\u5b9a|\u6c7a\u3081|\u3053\u3068\u306b\u3057"
)
QUESTION = re.compile(
    r"\b(?:open (?:question|issue|point)s?\b|still (?:need|have|has) to (?:decide|find|figure|check|know|clarify"
    r"|choose|determine|agree)|(?:not|un)(?: yet)? (?:sure|clear|decided|resolved) (?:whether|if|how|which|what"
    r"|why|when)"
    r"|remains? (?:open|unclear|to be (?:seen|decided))|unresolved|undecided|to be (?:decided|determined"
    r"|confirmed)|tb[dc]\b|needs? (?:to be )?(?:clarif|decid|confirm)\w+|no idea (?:why|how)|question restante"
    r"|offene frage|noch (?:offen|unklar)|queda pendiente)"
    r"|\u5f85\u5b9a|\u672a\u5b9a|\u5f85\u786e\u8ba4"
)
ACTION = re.compile(
    r"\b(?:todo|fixme|action items?|next steps?|follow[- ]up|(?:i|we)(?:['\u2019]ll| will|['\u2019]m going to"
    r"| am going to|['\u2019]re going to| are going to"
    r"| need to| have to| should| plan to|['\u2019]m gonna| gonna)\b (?!be\b|always|never|definitely|miss"
    r"|remember|love)|remind me|(?:can|could|would|will) you (?:please )?\w+"
    r"|please \w+|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|by (?:tomorrow|tonight|next|the end)|(?:will"
    r"|to) (?:take over|prepare|send|write|check|call|fix|review)"
    r"|deadline|due (?:on|by)|assigned to|planning (?:to|on)|signed up|\u00e0 faire|il reste|noch zu|muss noch"
    r"|pendiente)\b|\u5f85\u529e|\u4e0b\u4e00\u6b65"
)
FAILURE = re.compile(
    r"(?:error|exception)\b|\b(?:error:|failed|failure|fails|crash\w*|traceback|denied|timed? ?out|broken|bug"
    r"|panic|fatal)"
)
NEXT_STEP = re.compile(
    r"(?:(?:\w{1,12}[,.!]|now|first|next|then|also|so|ok(?:ay)?) ){0,3}let me (?!know\b)"
    r"|now,? i(?:['\u2019]ll| will| need to)\b"
)
"""How whoever works says what comes next."""
CORRECTION = re.compile(
    r"\b(?:actually|correction|scratch (?:that|what)|i meant|i mis(?:spoke|typed)|my mistake|sorry,|no longer|changed"
    r"|instead of"
    r"|rather than|turns out|is now|are now|now (?:at|is|it)|has (?:moved|been (?:moved|changed|raised|cut"
    r"|lowered|increased))|moved (?:to|from)|raised to|cut to|switch(?:ed|ing)? (?:to|from)|not \S+ anymore"
    r"|en fait|finalement|doch|eigentlich|en realidad|de hecho)\b|\u5176\u5b9e|\u6539\u4e3a|\u6539\u6210"
    r"|\u66f4\u6b63"
)
CANCELLED = re.compile(
    r"\b(?:cancell?ed|called off|abgesagt|storniert|annul\u00e9e?s?|cancelad[oa]s?|annullat[oa])\b"
    r"|\u53d6\u6d88|\u4e2d\u6b62|\u30ad\u30e3\u30f3\u30bb\u30eb"
)
RELATIVE_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:this|last|next|past|coming) (?:week(?:end)?|month|year|summer"
    r"|winter|spring|fall|autumn|night|evening|morning|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:on "
    r"|by )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|\w+ (?:days?|weeks?|months?|years?) ago|(?:recent|late)ly"
    r"|just (?:got|started|finished)|earlier|hier|demain|gestern|morgen|ayer|ma\u00f1ana)\b|\u6628\u5929"
    r"|\u4eca\u5929|\u660e\u5929|\u4e0a\u5468|\u4e0b\u5468|\u6628\u65e5|\u660e\u65e5"
)
COMMON = word_set(
    "a an the and or but so as if than then that this these those there here it its is are was were be been being am "
    "do does did done doing have has had having will would can could should shall may might must not no nor of for to "
    "in on at by with from into about over under after before up down out off through around i me my mine myself we us "
    "our ours you your yours yourself he him his she her they them their it's i'm i've i'll i'd we're we've we'll "
    "you're you've you'll they're they've that's there's here's what's let's don't can't won't didn't isn't doesn't "
    "wasn't couldn't haven't he's she's who what when where why how which all any some each every both more most much "
    "many few lot lots bit kind sort way ways one ones other others another same such own too also just only even "
    "still yet already always never ever again now soon very really so pretty quite totally absolutely definitely "
    "truly super well yeah yes yep yup nah oh wow ok okay hey hi hello thanks thank sure right true good great nice "
    "cool awesome amazing wonderful beautiful fantastic incredible lovely perfect best better fun happy glad proud "
    "excited special important thing things stuff something anything everything nothing someone everyone people time "
    "times day days moment moments life world get gets got getting go goes going gonna went come came know knew see "
    "saw seen look looks looking think thought feel feels felt feeling want wanted need make makes made take takes "
    "took say says said tell told talk talked keep keeps kept let give gives gave put try trying mean means meant like "
    "likes love loved help helps helped find found hope believe agree appreciate understand guess bet wish remember "
    "sound sounds seem seems happen happened since last long ago while though because 'cause cause cuz till until "
    "words word kind part posted post chat soon back around pic pics photo picture keep keeping posted worth key "
    "everything else overall bad hard tough crazy interesting idea question matter sense point reason fact case able "
    "us hear heard hearing doubt doubts worries problem priority vital essential huge first next new journey support "
    "progress joy happiness peace peaceful calming calm positive hugs luck"
)
NO_NAMES = word_set(
    "i i'm i've i'd i'll ok okay yes yeah no wow oh hey hi hello thanks thank well and but so the this that then if "
    "when what how why lol omg haha btw fyi asap monday tuesday wednesday thursday friday saturday sunday a an it it's "
    "we he she they you your my our his her their there here not just also please sorry actually english last next"
)
"""Words with a capital that are nobody's name."""
FUNCTION_WORDS = {
    "english": word_set("the and of to is was that with for are this they have not which were from will"),
    "french": word_set("le les des est une dans que qui pour pas sur avec sont nous vous il elle ont du et"),
    "german": word_set("der die das und ist nicht ein eine mit von den dem f\u00fcr auf werden wurde sich wir im zu"),
    "spanish": word_set("el los las una que en por para con del se est\u00e1 es son y como m\u00e1s pero su fue"),
    "portuguese": word_set("os uma que em por para com do da n\u00e3o se s\u00e3o e como mais mas foi ao na no"),
    "italian": word_set("il gli una che di per con del della non si sono e come pi\u00f9 ma \u00e8 nel alla ha"),
    "dutch": word_set("het een van en dat niet op met voor zijn is de te aan er maar wordt om ook werd"),
}
"""The commonest words of languages: they tell nothing of what a text is about."""
