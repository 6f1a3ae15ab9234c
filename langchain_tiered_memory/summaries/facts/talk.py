"""What tells talk that will not matter later from a statement: how it is put, and how little it names.

Praise, agreement, thanks, reactions, wisdom of no particular case and the announcement of a picture are talk, however
rare their words are. On the other side stand what somebody did, has, plans or likes, and when.
"""

from __future__ import annotations

import re

from langchain_tiered_memory.text.lexicon import CANCELLED

_COMMON_TEXT = (
    "a an the and or but so as if than then that this these those there here it its is are was were be been "
    "being am do "
    "does did done doing have has had having will would can could should shall may might must not no nor of for "
    "to in on "
    "at by with from into about over under after before up down out off through around i me my mine myself we us "
    "our ours "
    "you your yours yourself he him his she her they them their it's i'm i've i'll i'd we're we've we'll you're "
    "you've "
    "you'll they're they've that's there's here's what's let's don't can't won't didn't isn't doesn't wasn't "
    "couldn't "
    "haven't he's she's who what when where why how which all any some each every both more most much many few "
    "lot lots "
    "bit kind sort way ways one ones other others another same such own too also just only even still yet "
    "already always "
    "never ever again now soon very really so pretty quite totally absolutely definitely truly super well yeah "
    "yes yep "
    "yup nah oh wow ok okay hey hi hello thanks thank sure right true good great nice cool awesome amazing wonderful "
    "beautiful fantastic incredible lovely perfect best better fun happy glad proud excited special important thing "
    "things stuff something anything everything nothing someone everyone people time times day days moment "
    "moments life "
    "world get gets got getting go goes going gonna went come came know knew see saw seen look looks looking "
    "think thought "
    "feel feels felt feeling want wanted need make makes made take takes took say says said tell told talk "
    "talked keep "
    "keeps kept let give gives gave put try trying mean means meant like likes love loved help helps helped find "
    "found "
    "hope believe agree appreciate understand guess bet wish remember sound sounds seem seems happen happened "
    "since last "
    "long ago while though because 'cause cause cuz till until words word kind part posted post chat soon back "
    "around "
    "pic pics photo picture keep keeping posted worth key everything else overall bad hard tough crazy "
    "interesting idea "
    "question matter sense point reason fact case able us hear heard hearing doubt doubts worries problem "
    "priority vital "
    "essential huge first next new journey support progress joy happiness peace peaceful calming calm positive "
    "hugs luck"
)
COMMON = frozenset(_COMMON_TEXT.split())
_FEW_TELLING = 2
"""Fewer words that are not common tell nothing."""
_ENOUGH_TELLING = 3
"""Fewer tell little."""
_LONG = 4
"""Characters from which a word of another script or language counts as several: it may be a whole clause."""

SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "announces",
        re.compile(
            r"(?:(?:and|but|so|oh|wow|yeah|yes|yep) )?(?:here(?:['\u2019]s| is| are| it is| you go)|check (?:it"
            r"|this|that|them|out|my)"
            r"|take a look|have a look|see (?:this|the pic|below)|look at|this is (?:a|the|my) (?:pic|photo|picture)"
            r"|(?:i['\u2019]ll |let me )?(?:send|show|share|tell) (?:you|ya)|feel free|let me know|spill the"
            r"|hope (?:this|that|you|all|it)|good luck|best of|enjoy|keep (?:me|us|ya|you) posted|(?:see|talk to"
            r"|chat) (?:you|ya|soon)"
            r"|(?:caring|best|warm) |remember to|take (?:care|good care)|don['\u2019]t (?:worry|forget)|cheers"
            r"|congrat\w*"
            r"|highly recommend|bet |what (?:a|an) |how )"
        ),
    ),
    (
        "reacts",
        re.compile(
            r"(?:(?:and|but|so|oh|wow|aww?|yeah|yes|yep|yup|nah|haha+|lol|well|plus|hm+|omg|no|same)[,!.]? ){0,3}"
            r"(?:(?:that|this|it|they|those|these|you|your)(?:['\u2019](?:s|re|d|ve)| is| was| are| were"
            r"| must(?: be| have been)?)?"
            r" (?:really|definitely|totally|truly|so|such|always|just|quite|pretty|sounds?|looks?|means?|brings?"
            r"|inspires?|feels?|sure)\b"
            r"|sounds|looks (?:like|so|great|good)|glad|proud|love (?:the|that|your|how|it|this|to)|so (?:glad"
            r"|happy|cool|much|nice|true|proud"
            r"|sorry|sweet|great|many|excited)|can['\u2019]t wait|looking forward|long time|means|long live"
            r"|no (?:worries|doubts?|problem|way|wonder)"
            r"|same here|totally|absolutely|definitely|exactly|agreed|indeed|of course|for sure|thanks?|thank you"
            r"|sorry (?:to|about|for|you|that)|welcome"
            r"|appreciat\w+|wishing|sending|always (?:up|here|happy)|been (?:a|so)|so much|seeing|knowing"
            r"|realizing|just (?:seeing|being))\b"
        ),
    ),
    (
        "idles",
        re.compile(
            r"(?:(?:and|but|so|yeah|yes|well|plus|now|then|also|actually|honestly|personally) )?(?:i"
            r"|we)(?:['\u2019](?:m|ve|ll|d|re)| am| have"
            r"| will| would| are| can| could)?(?: all| just| really| still| also| so| totally| completely"
            r"| definitely| truly| always| never"
            r"| super| gonna| going to| not| already| kinda| actually){0,4} (?:agree|appreciate|understand|get it"
            r"|get that|see (?:that|it|you|what|why|how)"
            r"|know|keep (?:it|ya|you|at|going|trying|in)|feel|hope|wish|bet|guess|think|imagine|sure|glad|happy"
            r"|proud|excited|thrilled|stoked|grateful"
            r"|thankful|honou?red|blessed|lucky|sorry|amazed|ready|curious|hear|believe|can['\u2019]t (?:wait"
            r"|believe|imagine|thank|help)"
            r"|couldn['\u2019]t|can['\u2019]t|don['\u2019]t know|didn['\u2019]t|haven['\u2019]t|remember|forget"
            r"|mean|relate|wonder|getting there|here for"
            r"|need to|have to|should|must|love (?:that|how|it|the|your|seeing|hearing|to see|this)|like (?:that"
            r"|how|it|the|your)"
            r"|enjoyed (?:it|that)|tell|let you|talk|share|apologi[sz]e|recommend|suggest|look forward"
            r"|looking forward|fine|good|ok|okay"
            r"|doing (?:well|good|great|ok|fine|alright)|off to|there)\b"
        ),
    ),
    (
        "kin",
        re.compile(
            r"\b(?:my|our) (?:[\w-]{1,20} ){0,2}(?:husband|wife|partner|boyfriend|girlfriend|fianc\w+|kids?"
            r"|children|sons?|daughters?|baby"
            r"|sisters?|brothers?|siblings?|mom|mum|mother|dad|father|parents|grand\w+|aunt|uncle|cousins?|niece"
            r"|nephew|family|fam|friends?"
            r"|roommate|neighbou?rs?|boss|manager|colleagues?|coworkers?|mentor|teacher|professor|doctor|dentist"
            r"|therapist|vet|landlord"
            r"|team|company|job|work|business|startup|studio|office|school|university|degree|thesis|home|house"
            r"|apartment|flat|car|bike"
            r"|dogs?|cats?|pets?|puppy|kitten|birthday|wedding|health|doctor|back|knee|ankle|blood)\b"
        ),
    ),
    (
        "did",
        re.compile(
            r"(?:^|[,;] |\band |\bbut |\byesterday,? |\brecently,? |\bfriday,? |\bweek(?:end)?,? )(?:i|we|he|she"
            r"|they|my [\w-]{2,20})"
            r"(?:['\u2019]ve| have| had| has)?(?: also| just| recently| finally| actually| even| already| both)?"
            r" (?:\w{2,20}[a-z]ed|went|bought|made|took|met|began|built|broke|brought|chose|drew|drove|fell|flew"
            r"|found|gave|grew|"
            r"led|left|lost|paid|ran|rode|saw|sold|sent|spent|swam|taught|threw|won|wore|wrote|read|got|had|been"
            r"|did)\b"
        ),
    ),
    (
        "plans",
        re.compile(
            r"\b(?:(?:i|we)(?:['\u2019]m| am|['\u2019]re| are|['\u2019]ve been| have been)(?: also| still"
            r"| currently| just)? (?:planning|thinking (?:of|about)|looking"
            r" (?:for|into|at)|applying|working (?:on|at|in|as|with)|studying|learning|taking|training|saving"
            r"|preparing|starting|moving|getting|trying|hoping"
            r"|considering|writing|building|creating|reading|going (?:to|on|through))|sign(?:ed|ing) up|enrolled"
            r"|applied (?:to|for)|keen on|interested in)\b"
        ),
    ),
    (
        "has or is",
        re.compile(
            r"\b(?:(?:i|we)(?:['\u2019]ve got| have| got| own| had| run| teach| study| play| work| live| collect"
            r"| speak)(?: a| an| the| two| three| four| my"
            r"| our| some| another| in| at| for| as| on| with)\b|(?:i['\u2019]m|i am) (?:an? (?!bit|lot|little)"
            r"|allergic|originally|from|in (?:my|a)|into|on (?:a|the))"
            r"|(?:big|huge) fan|(?:i|we) (?:really |also |usually |personally |mostly )?(?:like|love|enjoy|hate"
            r"|prefer|avoid|dislike|adore|play) (?:\w+ing|to \w+|\w+s)\b)"
        ),
    ),
    (
        "when",
        re.compile(
            r"\b(?:yesterday|tonight|tomorrow|(?:this|last|next|past) (?:week(?:end)?|month|year|summer|winter"
            r"|spring|fall|night|mon|tue|tues|wed|thu|thur|thurs"
            r"|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:weeks?|months?|years?|days?) ago|recently"
            r"|since (?:high|college|childhood|19|20)|as a (?:kid|child))\b"
        ),
    ),
)
"""The pattern of each sign, for a clause in lower case. What "begins" is matched at its start, the rest anywhere."""
_TELLERS_TEXT = (
    "i i'm i've i'd i'll we we're we've we'd we'll my our he she they signed signing enrolled applied keen interested "
    "big huge"
)
_TELLERS = frozenset(_TELLERS_TEXT.split())
_OF_TELLERS = frozenset({"kin", "did", "plans", "has or is"})
"""Signs that no clause without one of these words has."""
AT_START = frozenset({"announces", "reacts", "idles"})
PERSONAL = frozenset({"kin", "did", "plans", "has or is", "when"})
"""Signs that somebody tells of their own life."""
_NAMES_SOMETHING = re.compile(r"\d|[/@\\_`]|(?<![.!?] )(?!I\b)[^\W\d_a-z]")
_SIGHT = re.compile("|".join(f"(?:{pattern.pattern})" for name, pattern in SIGNS if name in ("announces", "reacts")))
_SICK = re.compile(
    r"\b(?:pregnant|allergic|vegan|vegetarian|diabetic|married|divorced|engaged|retired|adopted|died|quit|sick|ill)\b"
)
"""One word that says much by itself."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def is_talk(clause: str, low: str) -> bool:
    """Whether a clause is talk at first sight: it reacts or announces, or tells nothing, and names nothing at all."""
    if _NAMES_SOMETHING.search(clause, 1):
        return False
    if _SIGHT.match(low):
        return True
    if not low.isascii():
        return False
    few = len(frozenset(_WORD.findall(low)) - COMMON) < _FEW_TELLING
    return few and not _SICK.search(low) and not CANCELLED.search(low)


def signs_of_talk(low: str, words: frozenset[str]) -> set[str]:
    """The signs of talk in a clause in lower case, given its words with plain apostrophes."""
    tells = not words.isdisjoint(_TELLERS)
    found = {
        name
        for name, pattern in SIGNS
        if (tells or name not in _OF_TELLERS) and (pattern.match if name in AT_START else pattern.search)(low)
    }
    telling = sum(_LONG if len(word) >= _LONG and not word.isascii() else 1 for word in words - COMMON)
    if telling < _FEW_TELLING:
        found.add("tells nothing")
    elif telling < _ENOUGH_TELLING:
        found.add("tells little")
    return found
