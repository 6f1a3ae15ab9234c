"""Facts said as people say them: one sentence for each, none made from a form, planted in real talk.

`conversations` and `planted_talk` fill a few dozen forms with names and figures, so that a list of facts can come to
know the forms. Here each sentence was written once, about somebody's life, work or spare time, with or without a name
or a figure in it, and each stands in a message of real talk, by itself or between what else was said. What decides
whether it is shown can only be what it says.

A second list, by somebody else, is longer-winded, in several languages, and has sentences of talk that look like
statements. Signs of facts were looked for on one half of it; nobody read the other (`plain_facts_second.json`).
"""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from benchmarks.conversations import Conversation, FactKind, PlantedFact, Turn
from benchmarks.planted_talk import said_in, with_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.messages import BaseMessage

PlainList: TypeAlias = Literal["first", "seen", "held back"]
"""The first list, or a half of the second one."""
_SECOND: Final = Path(__file__).with_name("plain_facts_second.json")

_SAID: Final[dict[FactKind, str]] = {
    "life": """
ok so my sister Ilse is visiting, she can't have peanuts btw, hospital last time | peanut
We ended up naming the baby Tobiah, after my grandad | Tobiah
The vet put Mochi on thyroid tablets, half a pill each morning | Mochi | thyroid
I moved out of Larchmont in March, I'm at 14 Quarry Lane now | 14 Quarry Lane
Dad's bypass is scheduled for the 9th of June at St. Brennan's | bypass | 9th of June
I don't eat anything with gluten, it wrecks me for days | gluten
Our anniversary is on October 3rd so I'm off that whole weekend | October 3
My left knee is the bad one, so no running, the physio said swimming only | knee | swimming
Turns out Prisca got into Leiden, she's doing marine biology | Prisca | Leiden
her husband is Kasimir, he drives the 41 bus | Kasimir | 41
never book me anything before 10, I do the school run until then | before 10
I get migraines from that fluorescent light in room 2, please seat me in the other office | migraine
the wifi there is Heronpoint and the password is teal-anchor-77 | teal-anchor-77
spare key is with Mrs Oduya at number 9 | Oduya
I sold the Corolla for 4,150 in the end | Corolla | 4,150
My passport runs out on 22 February 2027 | 22 February 2027
my niece Saoirse turned four on Sunday | Saoirse | four
He's been sober since 2019, please don't suggest wine bars | sober
I wear a hearing aid on the right side so sit on my left | hearing aid
Grandpa left me his Leica, it needs a new shutter | Leica | shutter
we keep kosher at home | kosher
My blood pressure pills are ramipril 5 mg, mornings | ramipril
The dog's microchip ends in 8842 | 8842
Our landlord, Mr Petkov, only answers texts | Petkov | texts
I was born in Recife but grew up in Turku | Recife | Turku
my stepson lives with us on odd weeks | stepson | odd weeks
Aunt Bea can't do stairs anymore | Bea | stairs
she goes by Lex, never Alexandra | Lex
I'm scared of flying so it's trains for me | flying | train
The kids' school is Havnbakken, the little one starts in August | Havnbakken
Number to reach me during the day: 0176 5523 881 | 5523
I only drink decaf after noon | decaf
Two of my uncles had colon cancer so I get screened every three years | colon
My car is in the Moorgate garage, level 3, bay 57 | bay 57
the bins go out Thursday night, not Friday | Thursday
mum's maiden name was Okonjo | Okonjo
""",
    "work": """
so after all that back and forth we're taking the Ostrava venue | Ostrava
let's do the launch on the 17th then, Mei is fine with it | launch | 17th
Going forward invoices go to billing@kestrelworks.example, not to me | billing@kestrelworks.example
the board capped the pilot at 38k, not a cent more | 38k
Nobody touches the ledger table without asking Farida first | ledger | Farida
we dropped Kafka. It's plain Postgres queues from here on | Kafka | Postgres
The staging box is 10.8.3.44 and it listens on 9443 | 10.8.3.44
retention is 90 days for logs and seven years for invoices | 90 days
Please always answer me in bullet points, I read these on my phone | bullet
my manager is Ulrike Stamm since May, Bo went to the Lisbon team | Ulrike Stamm
The contract number is KW-20981-B in case they ask | KW-20981-B
it must run offline, the ship has no internet for weeks | offline
deadline got pushed, we've got until the 30th of November | 30th of November
for the report use Garamond 11, legal insists | Garamond
we'll go live in Portugal first, Spain follows in Q3 | Portugal | Spain
the unit price came out at 7.85 per crate | 7.85
config lives in /etc/harrow/relay.yaml on the gateway | /etc/harrow/relay.yaml
Hannes signs off on anything above 2,000 | Hannes | 2,000
we're on version 3.4.1 in production, do not upgrade before the audit | 3.4.1
the customer is Brightwell Dairy, contact there is Joost | Brightwell | Joost
I'd rather we don't use red in the charts, two of the partners are colour blind | red | colour blind
Rosalind is out until the 12th, ask Teun for approvals in the meantime | Teun | approvals
our target is to halve onboarding time by summer | onboarding
the warehouse closes at 16:30 on Fridays so pickups have to be earlier | 16:30
all amounts in the model are thousands of euros, ex VAT | thousands | euro
The supplier for the hinges is Verhaeghe, lead time six weeks | Verhaeghe | six weeks
Don't email the Korean team directly, it all goes through Jiwoo | Jiwoo
write everything in British spelling | British
I report to two people, Anselm for the budget and Chidi for the rest | Anselm | Chidi
We lost the Halden account last week | Halden
tests have to pass on Windows too | Windows
the audience is nurses, no jargon from engineering | nurses
Our fiscal year starts in April | April
password resets go through the helpdesk, ext. 4410 | 4410
I've told the press office we won't comment before the ruling | comment | ruling
primary key is the shipment uuid, not the order number | uuid
There will be 140 guests, 23 of them vegetarians | 140
the client hates stock photos | stock photos
Backup runs at 02:20 and takes about an hour | 02:20
we picked the oak for the counter | oak
Pernille resigned, her last day is the 28th | Pernille | 28th
anything over ten pages gets rejected by the committee | ten pages
The pump must never run dry, it seizes in a minute | pump | dry
the new name for the product is Fathom | Fathom
API calls are limited to 50 a minute on our plan | 50 a minute
Use the sandbox account tilde_demo for anything risky | tilde_demo
my deputy is Wanjiru | deputy | Wanjiru
goal for this quarter: get churn below 3% | churn | 3%
the greenhouse needs to stay above 12 degrees at night | 12 degrees
""",
    "spare time": """
I'm saving up for a Lowden guitar, about 60% there | Lowden
We're flying to Tbilisi on the 4th, back the 19th | Tbilisi | 4th
book club picked The Wall for next month | The Wall
I signed up for the Ghent half marathon | Ghent
I'm allergic to nothing but cats make me sneeze, so no cat cafe | cat
My favourite tea is that smoky lapsang stuff | lapsang
the band rehearses every second Tuesday in Ivo's garage | Tuesday | Ivo
Recipe note: 340 g flour, not 400, otherwise it's a brick | 340
She wants a telescope for her birthday, the Heritage 130 | Heritage 130
the cabin costs 95 a night and sleeps six | cabin | 95
we planted the damson by the south wall | damson
I quit smoking on New Year's, 11 months now | smoking
Kurt and I are splitting the rent 60/40 since he has the big room | 60/40
the old boat's name is Sandpiper II | Sandpiper
I promised Noor to return the drill by Saturday | Noor | drill
Choir moved from Monday to Wednesday | Choir | Wednesday
my size is 43 in hiking boots, 42 in everything else | 43
I'm reading Austerlitz at the moment, slowly | Austerlitz
he plays the viola in the Tromsø orchestra | viola | Troms
the combination for the shed is 4-0-7-1 | 4-0-7-1
we booked the ferry from Bari, leaves at 22:00 | Bari
I'd like to retire at 58 and move to the coast | 58
she's training for her pilot licence | pilot licence
Next holiday is Madeira, Ravi already has the tickets | Madeira
I gave up on sourdough and bake rye now | rye
favourite composer? Sibelius, no contest | Sibelius
the quilt is for Thandi's wedding in May | quilt | Thandi
I owe Stellan forty quid from the concert | Stellan | forty
piano lessons are Mondays at five | piano | Monday
I collect old bus tickets | bus tickets
my bike is a blue Koga, stolen once, found in a canal | Koga
the hive by the pear tree lost its queen | hive | queen
no more horror films for me after the last one | horror
We're calling the puppy Biscuit | Biscuit
The tent leaks at the seam, bring the other one | tent
""",
}
"""Sentence, subject (where it is another word than the value) and value."""
_CORRECTED: Final = """
The meeting room is Falcon for the review | wait, Falcon is taken, the review's in Osprey | review | Falcon | Osprey
Grandma's train gets in at 14:05 | they changed her train, it's 15:40 now | train | 14:05 | 15:40
Maybe the shop is Blue Thread | we went with Copper Needle for the shop after all | shop | Blue Thread | Copper Needle
budget for the kitchen is 9,000 | kitchen's going to be 11,500, the bank said yes | kitchen | 9,000 | 11,500
my doctor is Dr. Winfield | I switched to Dr. Achterberg, Winfield retired | Dr. | Winfield | Achterberg
Deliver it to gate 3 | gate 3 is blocked, everything to gate 7 please | gate | gate 3 | gate 7
The API key rotates every 30 days | rotation is weekly now, security changed it | rotat | 30 days | weekly
Lena does the catering | Lena fell ill, Dov does the catering instead | catering | Lena | Dov
Pick me up at platform 6 | it's platform 2 they say, not 6 | platform | platform 6 | platform 2
The invoice is 1,280 euros | invoice came down to 1,190 | invoice | 1,280 | 1,190
we're staying at Hotel Marisol | Marisol was full so it's the Alcazar now | Marisol | Hotel Marisol | Alcazar
My flight's on Tuesday | flight got moved to Thursday | flight | Tuesday | Thursday
The paint for the hall is sage | no sage, they only had moss, so moss in the hall | hall | sage | moss
Tutor is Mr. Halloran | Halloran quit, the tutor's called Nwosu | Tutor | Halloran | Nwosu
use port 8811 for the bridge | 8811 clashes, bridge is on 8850 | bridge | 8811 | 8850
Dinner is for eight people | two cancelled, we're six for dinner | dinner | eight | six
"""
"""What is said first, what takes its place, the subject of both, the old value and the one that holds."""
_ALONE: Final = 0.4
"""Of the facts, that are a message of their own."""


def plain_talk(folder: Path, messages: int, *, seed: int = 0, listed: PlainList = "first") -> Conversation:
    """`messages` messages of the conversations in the files of `folder`, with all facts of a list in what users say.

    Args:
        folder: Files that `tiered-memory eval` reads, at any depth.
        messages: How many; the users must say enough of them.
        seed: Of the order of the conversations, and of what is said where.
        listed: Which sentences are planted.

    Raises:
        ValueError: when users say fewer messages than there are facts.
    """
    chance = random.Random(seed)
    said = list(islice(said_in(folder, chance), messages))
    users = [number for number, (message, _) in enumerate(said) if message.type == "human"]
    facts, pairs, talk = (list(_facts()), list(_pairs()), []) if listed == "first" else _second(listed)
    needed = len(facts) + 2 * len(pairs) + len(talk)
    if len(users) < needed:
        msg = f"{needed} messages of users are needed, {folder} has {len(users)} among {messages}: name more messages"
        raise ValueError(msg)
    places = iter(chance.sample(users, needed))
    planted = {next(places): one for one in facts}
    for before, after in pairs:
        planted |= zip(sorted((next(places), next(places))), (before, after), strict=True)
    only_said = {next(places): sentence for sentence in talk}
    turns = list[Turn]()
    for number, (message, at) in enumerate(said):
        fact = None
        if number in planted:
            sentence, kind, subject, value = planted[number]
            by_itself = listed != "first"
            fact = PlantedFact(kind=kind, subject=subject, value=value, number=number, by_itself=by_itself)
            message = _with(message, sentence, chance)  # noqa: PLW2901
        elif number in only_said:
            message = _with(message, only_said[number], chance)  # noqa: PLW2901
        turns.append(Turn(message=message, at=at, fact=fact))
    return Conversation(turns=tuple(turns))


def _with(message: BaseMessage, sentence: str, chance: random.Random) -> BaseMessage:
    alone = message.model_copy(update={"content": sentence})
    return alone if chance.random() < _ALONE else with_sentence(message, sentence, chance)


_Said: TypeAlias = tuple[str, FactKind, str, str]
"""A sentence, the kind of what it states, its subject and its value."""


def _second(half: PlainList) -> tuple[list[_Said], list[tuple[_Said, _Said]], list[str]]:
    """The facts, the pairs of a former one and what takes its place, and the talk of a half of the second list."""
    held = json.loads(_SECOND.read_text(encoding="utf-8"))[half]

    facts: list[_Said] = [(sentence, "any", sentence, values[0]) for sentence, *values in held["facts"]]
    pairs: list[tuple[_Said, _Said]] = [
        ((old, "any", old, former), (new, "correction", old, values[0])) for old, new, former, *values in held["pairs"]
    ]
    return facts, pairs, held["talk"]


def _facts() -> Iterator[_Said]:
    for kind in get_args(FactKind):
        for line in _SAID.get(kind, "").strip().splitlines():
            sentence, *about = line.split(" | ")
            yield sentence, kind, about[0], about[-1]


def _pairs() -> Iterator[tuple[_Said, _Said]]:
    for line in _CORRECTED.strip().splitlines():
        first, later, subject, old, new = line.split(" | ")
        yield (first, "work", subject, old), (later, "correction", subject, new)
