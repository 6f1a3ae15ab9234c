"""Two worlds that share no names, wordings or forms of asking: one to develop on, the other to report.

Each knows a subject with a number in its name, what was settled about it, and a dozen ways of asking for that.
"""

# ruff: noqa: SIM905 - a list literal of these would take a line for each word

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORMS: Final = (
    "bare",
    "greeting before",
    "sentences before",
    "one long sentence",
    "order",
    "no question mark",
    "below a log",
    "above a log",
    "German",
    "French",
    "Spanish",
    "Chinese",
)
"""How something is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Words of one world. `{s}` stands for a subject, `{v}` for what was settled, `{n}` for a number."""

    name: str
    subjects: tuple[str, ...]
    """Names with `{n}` in them: files in runs of agents, people in talk."""
    people: tuple[str, ...]
    settled: tuple[str, ...]
    """Of a file, as it is said in passing."""
    alike: str
    """The same in one wording."""
    told: tuple[str, ...]
    """Of a person."""
    values: tuple[str, ...]
    """Parts of made-up values of people."""
    orders: tuple[str, ...]
    """What the user of an agent asks for, turn by turn."""
    remarks: tuple[str, ...]
    """What the agent says when it is done."""
    chat: tuple[tuple[str, str], ...]
    """Small turns of talk."""
    calls: tuple[str, str]
    """Names of the tool that reads files, and of another."""
    results: tuple[str, ...]
    """Lines of what a tool gives."""
    log: tuple[str, ...]
    greetings: tuple[str, ...]
    sentences: tuple[tuple[str, ...], ...]
    """Six that lead up to a question."""
    of_file: dict[str, str]
    """A question for each form that has words of its own, `bare` for those that have not; of files."""
    of_person: dict[str, str]


PORTS: Final = World(
    name="ports",
    subjects=("module_{n}.py", "worker_{n}.py", "gateway_{n}.py"),
    people=tuple(
        "Maria Ignacio Fenna Tobias Oluchi Darragh Zeynep Hamish Katya Milo Wanjiru Paavo Soledad Radu Mireille Emre "
        "Lorcan Nadia Bastien Aroha Jonas Farida Sunniva Teodor Priya Casimir Leonie Kwame Ottilie Rafael".split()
    ),
    settled=(
        "By the way, the port that was decided for {s} is {v}.",
        "We decided on port {v} for {s} in the meeting.",
        "For {s} the port is {v}, the others agreed.",
    ),
    alike="Noted for the register: the port decided for {s} is {v}.",
    told=(
        "My friend {s} lives in {v} since last year.",
        "{s} moved to a town called {v} and lives there alone.",
        "I visited {s}, who lives in {v} now.",
    ),
    values=tuple("bren tol mar vel dun kess ap lor wick hav stad ren".split()),
    orders=(
        "Please look at {s} and tell me what it does.",
        "Go on with {s}.",
        "Now check {s}, please.",
        "Have a look at {s} too.",
    ),
    remarks=(
        "I read {s}: it starts the server and handles requests.",
        "{s} is fine, nothing to change.",
        "Done with {s}; the checks pass.",
    ),
    chat=(
        ("The weather was awful today and I stayed in.", "That sounds like a good day for a book and some tea."),
        ("I made soup with lentils and it came out well.", "Lentil soup is lovely, did you add some lemon?"),
        ("Work was long, many meetings about the budget.", "Long meetings are tiring, I hope the evening is calm."),
        ("My bike has a flat tyre again.", "A patch kit helps, or the shop at the corner may mend it."),
        ("We watched a film about a lighthouse keeper.", "I like films by the sea, what did you think of the end?"),
        ("I want to learn the piano this year.", "A little every day goes a long way with the piano."),
    ),
    calls=("read_file", "run_query"),
    results=(
        "def handle_{n}(request, server): return server.reply(request, status={n})",
        "    timeout = config.get('timeout', {n})  # seconds before the server gives up",
        "    logger.info('listening on %s', port_of(server))",
        "class Handler{n}(BaseHandler): retries = {n}",
        "    assert server.port, 'no port was configured'",
    ),
    log=(
        "2025-03-0{d} 10:{m}:11 ERROR worker-{d} timeout after 30s in {o}",
        "2025-03-0{d} 10:{m}:12 WARN retrying connection to server, attempt {d}",
        "Traceback (most recent call last): File '{o}', line {m}, in handle",
        "    raise ConnectionError('server gave up on request {m}')",
        "2025-03-0{d} 10:{m}:15 INFO listening again, {m} requests waiting",
    ),
    greetings=("Hi!", "Hello again, how are you?", "Good morning!"),
    sentences=(
        (
            "I am filling in the firewall form now.",
            "The people of the data centre want it by noon.",
            "They ask for every server that we run.",
            "I already wrote down the names and the owners.",
            "My colleague will check the requests tomorrow.",
            "So there is one thing left that I need.",
        ),
        (
            "Thanks for the help so far.",
            "Yesterday the meeting took until the evening.",
            "Nobody had written anything down.",
            "Today I have to send a list around.",
            "It must be complete, or they will refuse it.",
            "I hope that you remember this one.",
        ),
    ),
    of_file={
        "bare": "Which port was decided for {s}?",
        "one long sentence": (
            "As the auditors are coming by tomorrow morning and everybody in the office is nervous about the list of "
            "open connections that we promised to hand over to them before lunch I would like to know which port was "
            "decided for {s} so that I can write it into the third column of the table"
        ),
        "order": "Write the firewall rule for {s}'s port.",
        "no question mark": "remind me which port was decided for {s}",
        "German": "Welcher Port wurde f\u00fcr {s} festgelegt?",
        "French": "Quel port a \u00e9t\u00e9 choisi pour {s} ?",
        "Spanish": "\u00bfQu\u00e9 puerto se decidi\u00f3 para {s}?",
        "Chinese": "{s}\u7684\u7aef\u53e3\u662f\u591a\u5c11\uff1f",
    },
    of_person={
        "bare": "Which town does {s} live in?",
        "one long sentence": (
            "While I am packing the parcels for the holidays and the post office closes in an hour and I still have to "
            "find the tape and the brown paper please tell me which town {s} lives in because the label is "
            "the last thing that is missing on the small one"
        ),
        "order": "Write an address label for {s}, with the town.",
        "no question mark": "remind me which town {s} lives in",
        "German": "In welcher Stadt wohnt {s}?",
        "French": "Dans quelle ville habite {s} ?",
        "Spanish": "\u00bfEn qu\u00e9 ciudad vive {s}?",
        "Chinese": "{s}\u4f4f\u5728\u54ea\u4e2a\u57ce\u5e02\uff1f",
    },
)
"""To develop on."""

INVOICES: Final = World(
    name="invoices",
    subjects=("billing/invoice-{n}.sql", "report{n}.ipynb", "etl/load_step{n}.yaml"),
    people=tuple(
        "Anselm Birgitta Chidi Dorothea Eskil Florentin Gudrun Hyacinth Isolde Jarrod Kerttu Ludovic Minako Nkechi "
        "Odalys Petronel Quirin Rosalba Sigrun Thaddeus Ulyana Valentijn Wilhelmina Xiomara Yevgeni Zuleika".split()
    ),
    settled=(
        "Legal wants {s} kept for {v} days of retention.",
        "One more thing, retention of {s} shall be {v} days.",
        "I was told {v} days are the retention of {s}.",
    ),
    alike="Retention entered: {s} stays {v} days.",
    told=(
        "{s} just adopted a dog, it is called {v}!",
        "You should see {v}, the dog of {s}, such a clown.",
        "Met {s} in the park, the dog's name is {v}.",
    ),
    values=tuple("zib mo lu quo rax fif nanu bo pel shu gri tam".split()),
    orders=(
        "Could you open {s} next?",
        "Take {s} after that.",
        "And {s}: anything odd in there?",
        "Summarise {s} for the team.",
    ),
    remarks=(
        "Nothing odd in {s}, totals match.",
        "The columns of {s} are documented now.",
        "{s} loads without a warning.",
    ),
    chat=(
        ("Ran six kilometres before breakfast, my legs are jelly.", "Well done, stretching will help the legs."),
        ("Trying to fix the kitchen tap, water everywhere.", "Shut the valve under the sink first."),
        ("The choir sings in the old church on Sunday.", "A church has a wonderful echo for a choir."),
        ("Found a coat at the flea market for five euros.", "What a bargain, coats are dear this winter."),
        ("The kids built a castle out of boxes.", "Boxes are the best toys there are."),
        ("My phone keeps dying at noon.", "The battery may be old, some shops swap it."),
    ),
    calls=("open_document", "http_get"),
    results=(
        "SELECT account, sum(amount) FROM ledger_{n} WHERE year = 20{n} GROUP BY account;",
        "-- retention is handled elsewhere, see the policy, rows: {n}",
        "{{'status': 200, 'rows': {n}, 'days': {n}, 'warnings': []}}",
        "ALTER TABLE totals_{n} ADD COLUMN checked boolean;",
        "step {n}: loaded {n} rows in {n} ms",
    ),
    log=(
        "[{m}:{d}4] airflow.task {o} state=up_for_retry try={d}",
        "[{m}:{d}5] psycopg2.errors.LockNotAvailable: canceling statement due to lock timeout",
        "[{m}:{d}6] rows loaded: {m}, skipped: {d}, days behind: {d}",
        "[{m}:{d}7] warning: column 'checked' of {o} is null in {m} rows",
        "[{m}:{d}8] task finished with return code {d}",
    ),
    greetings=("Hey there.", "Welcome back! Let us continue.", "Evening, hope all is well."),
    sentences=(
        (
            "The compliance questionnaire came in this afternoon.",
            "It has forty pages, can you imagine.",
            "I did the first half on the train.",
            "Some columns are still empty, sadly.",
            "The lawyers will call me in ten minutes.",
            "Quick one before they do.",
        ),
        (
            "That was a good summary, well done.",
            "I showed the totals to my manager.",
            "She was happy, and then she asked something.",
            "I had no idea what to say.",
            "We spoke of it weeks ago, I am sure.",
            "Let us see.",
        ),
    ),
    of_file={
        "bare": "How many days of retention does {s} have?",
        "one long sentence": (
            "Given that the lawyers keep sending me these endless spreadsheets in which every single document needs a "
            "figure in the rightmost cell and that I cannot find my own notes from that call anywhere on this laptop "
            "I wonder how many days of retention {s} has according to what we settled back then when we "
            "went through everything together"
        ),
        "order": "Fill in the retention of {s} in the questionnaire.",
        "no question mark": "tell me again the retention days of {s}",
        "German": "Wie viele Tage wird {s} aufbewahrt?",
        "French": "Combien de jours faut-il conserver {s} ?",
        "Spanish": "\u00bfCu\u00e1ntos d\u00edas se conserva {s}?",
        "Chinese": "{s}\u8981\u4fdd\u7559\u591a\u5c11\u5929\uff1f",
    },
    of_person={
        "bare": "What is the name of {s}'s dog?",
        "one long sentence": (
            "Since the birthday party is already this weekend and I promised the others to order a cake with some "
            "writing in icing on it and the bakery wants to know the exact letters by tonight I have to find out what "
            "the dog of {s} is called so that nobody laughs at us when the box is opened in front of all the guests"
        ),
        "order": "Draft a birthday card from {s}'s dog, signed with its name.",
        "no question mark": "what was {s}'s dog called again",
        "German": "Wie hei\u00dft der Hund von {s}?",
        "French": "Comment s'appelle le chien de {s} ?",
        "Spanish": "\u00bfC\u00f3mo se llama el perro de {s}?",
        "Chinese": "{s}\u7684\u72d7\u53eb\u4ec0\u4e48\u540d\u5b57\uff1f",
    },
)
"""To report: nothing was chosen while looking at it."""

WORLDS: Final = {one.name: one for one in (PORTS, INVOICES)}
