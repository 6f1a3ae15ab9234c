"""Words and sentence forms of the made-up conversations.

The forms of facts are what people write when they mention something in passing as much as when they announce it:
a measure that planted only "we decided that" would reward a search for these words.
"""

# ruff: noqa: SIM905 - a list literal of these would take a line for each word

from __future__ import annotations

from typing import Final

ADJECTIVES: Final = (
    "northern southern coastal inland upper lower autumn spring winter evening morning weekly quarterly spare second "
    "outer inner municipal regional travelling temporary rented shared copper timber brick glass steel linen amber "
    "harbour valley riverside hillside island orchard railway market chapel school clinic"
).split()
NOUNS: Final = (
    "greenhouse ferry ledger choir archive workshop bakery pump survey catalogue boiler newsletter rota depot tender "
    "exhibit canteen server gateway rehearsal seminar nursery kiln trailer brochure concert fence loom pantry cellar "
    "turbine observatory excavation manuscript playground lift dispatch inventory payroll migration dashboard importer "
    "sensor podcast retreat auction fair regatta quarry aviary"
).split()
FIRST_NAMES: Final = (
    "Imke Tobias Zeynep Radu Oluchi Mireille Hamish Yuki Paavo Ines Darragh Soledad Wanjiru Emre Katya Lorcan Nadia "
    "Bastien Aroha Jonas Farida Milo Sunniva Teodor Priya Casimir Leonie Kwame Ottilie Rafael Signe Dmitri Amparo "
    "Niamh Bogdan Chiara Elias Marit Pascal Ruta"
).split()
LAST_NAMES: Final = (
    "Hallberg Okonkwo Brandt Vasquez Tamm Lindqvist Moreau Achterberg Fitzroy Nakagawa Petrescu Oyelaran Castellano "
    "Dvorak Eklund Ferreira Grigoryan Haverkamp Iversen Jankowski Kalder Lazaridis Mbeki Novotny Ostrowski Pellegrini "
    "Quintero Rautio Szabo Thorvald Ulrich Verhoeven Westergaard Yildiz Zamora Abernathy Birkeland Cardenas Delacroix "
    "Engstrom"
).split()
MATERIALS: Final = (
    "larch slate canvas cork zinc granite bamboo plaster terracotta felt resin walnut limestone aluminium hemp cedar "
    "bronze porcelain gravel wool plywood acrylic marble rubber"
).split()
THINGS: Final = (
    "shingles panels tiles brackets curtains crates hinges shelving benches cladding lanterns gutters screens mats "
    "rails covers partitions trays fittings drapes posters labels racks frames"
).split()
FOLDERS: Final = (
    "plans drafts exports fixtures invoices scans reports sketches notes minutes layouts recordings backups forms"
).split()
STEMS: Final = (
    "intake summary checklist baseline handover roster estimate overview mapping outline schedule template register "
    "timeline appendix cutlist tally briefing"
).split()
SUFFIXES: Final = ("md", "csv", "pdf", "yaml", "py", "xlsx", "txt", "toml")
UNITS: Final = ("euros", "kilos", "litres", "metres", "visitors", "copies", "hours", "kWh")
PLACES: Final = (
    "Tartu Galway Bergen Porto Leiden Trieste Aarhus Girona Malmo Ghent Lublin Turku Cork Braga Graz Bruges"
).split()
FOODS: Final = "lentil soup,rye bread,plum cake,fish stew,pickled beets,fennel salad,barley risotto,quince jam".split(
    ","
)
MOODS: Final = "tired,cheerful,a bit lost,relieved,curious,impatient,hopeful,distracted,in good spirits".split(",")

NAME_FORMS: Final = (
    "{v} is the one to ask about the {s}.",
    "If anything comes up with the {s}, {v} picks up the phone.",
    "Turns out {v} has been looking after the {s} all along.",
    "I had a long call with {v}, who runs the {s} these days.",
    "Our contact for the {s} is {v}.",
    "{v} took over the {s} last week.",
    "For the {s} we are dealing with {v} from now on.",
    "The key to the {s} is with {v}, oddly enough.",
    "{v} signs everything that concerns the {s}.",
    "By the way, the {s} belongs to {v}'s team.",
)
NUMBER_FORMS: Final = (
    "The {s} comes to {v}.",
    "We measured the {s} again and got {v}.",
    "Somebody wrote {v} on the sheet for the {s}, and that is right.",
    "The budget for the {s} is {v}.",
    "They want {v} for the {s}, which sounds fair.",
    "Put the {s} down as {v}.",
    "The {s} can take {v} and not more.",
    "Last count for the {s}: {v}.",
    "I make it {v} for the {s}.",
    "It took {v} to get the {s} through, so plan with that.",
)
PATH_FORMS: Final = (
    "Everything on the {s} is in {v} now.",
    "I put the {s} into {v}.",
    "Look at {v} when you get to the {s}.",
    "The {s} lives under {v}.",
    "There is a copy of the {s} at {v}.",
    "Open {v} first, it has the {s} in it.",
    "My notes about the {s} went to {v}.",
    "What we need for the {s} can be found in {v}.",
    "Please keep the {s} in {v}.",
)
DECISION_FORMS: Final = (
    "We decided on {v} for the {s}.",
    "Let's go with {v} for the {s}.",
    "So it will be {v} at the {s}, everybody is fine with that.",
    "After all the talk, the {s} gets {v}.",
    "The vote went to {v} for the {s}.",
    "For the {s} I would rather have {v}, so that is settled.",
    "We are going ahead with {v} on the {s}.",
    "The {s} is going to have {v}.",
    "Fine, {v} it is for the {s}.",
    "They agreed to {v} for the {s} because it dries faster.",
)
CORRECTION_FORMS: Final = (
    "Correction on the {s}: {v}, not {o}.",
    "I was wrong about the {s}. For the {s} it is {v} rather than {o}.",
    "Scratch what I said about the {s}: it is {v} now.",
    "The {s} changed again, we are at {v} instead of {o}.",
    "Sorry, I mixed things up: for the {s} it should be {v}.",
    "Update on the {s}: no longer {o}, it is {v}.",
    "Actually the {s} is {v}.",
)

USER_CHATTER: Final = (
    "I am {mood} today.",
    "Did you sleep well, if that is a thing for you?",
    "The bus from {place} was late again, so I walked half of the way.",
    "We had {food} for lunch and nobody complained.",
    "My neighbour keeps telling me stories about {place}.",
    "Could you explain that once more, a little slower?",
    "What would you do in my place?",
    "I keep going back and forth on it.",
    "Somebody left a bag of {things} in the hallway and nobody knows why.",
    "It rained the whole morning and the dog refused to go out.",
    "Is that normal, or am I doing something odd?",
    "Give me a minute, the phone is ringing.",
    "Okay, I am back.",
    "That makes sense, thanks.",
    "Can we look at it from another side?",
    "My cousin in {place} says one should never trust {things}.",
    "Honestly I had hoped it would go a bit faster.",
    "The radio played the same song three times today.",
    "We will see what they say tomorrow.",
    "I tried it the way you said, and it went better than before.",
    "Nobody answered, as usual.",
    "Let me think about it over dinner.",
    "There was a nice smell of {food} in the office.",
    "I have to pick up the children in a moment.",
    "How did people do this before there were computers?",
    "The meeting dragged on and on, mostly about {things}.",
    "Je reviens dans cinq minutes, le facteur sonne.",
    "Das Wetter in {place} soll morgen besser werden.",
    "Mi hermana dice que todo esto es demasiado complicado.",
    "Let us not get lost in details.",
    "I read something about {material} the other day, quite interesting really.",
    "You are probably right.",
    "Remind me why we started with this in the first place?",
    "One more thing before I forget, though it can wait.",
    "The printer is out of paper again.",
    "I wonder whether {place} is worth a trip in the autumn.",
    "It is louder than usual here, sorry about the typing.",
)
ASSISTANT_CHATTER: Final = (
    "That sounds reasonable to me.",
    "There are several ways to look at this, and none of them is wrong.",
    "A good next step would be to write down what you already have and what is missing.",
    "Many people find that {things} are harder to judge than they look.",
    "If you like, we can go through it piece by piece.",
    "I would begin with the part that worries you most, because the rest tends to follow.",
    "Noted.",
    "Thank you, that helps.",
    "It may be worth asking somebody who has done it before.",
    "In general {material} keeps its shape well, though it depends on how it is treated.",
    "Take your time, there is no hurry on my side.",
    "That is a common situation and usually sorts itself out once everybody has been heard.",
    "You could also turn it around and ask what would happen if you did nothing.",
    "I am sorry to hear that, it must have been tiring.",
    "Shall I put that into a short list for you?",
    "One thing to watch for is that small delays add up more quickly than large ones.",
    "It helps to separate what is urgent from what is merely loud.",
    "A walk sometimes does more than another hour at the desk.",
    "{place} is lovely at that time of the year, as far as I have read.",
    "The usual advice is to test it on something small before you commit to it.",
    "From what you describe, the simplest explanation is probably the right one.",
    "We can come back to this later without losing anything.",
    "Your cousin may have a point there.",
    "I would not worry about it too much at this stage.",
    "Do tell me how it went.",
    "There is a difference between a plan that looks tidy and a plan that works.",
    "Some of it depends on things neither of us can see from here.",
    "If it fails, you will at least know more than you do now.",
    "That is a fair question, and the short answer is that it depends.",
    "People in {place} used to say that patience costs nothing.",
    "I can also write it down in a more formal way if you need to pass it on.",
    "It is good that you noticed it this early.",
)
