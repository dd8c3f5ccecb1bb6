"""Fourteen small invented worlds that generated traces talk about: things with figures, and terms that are explained in text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Attribute:
    """A figure that everything of a world has."""

    name: str
    other: str
    """Another word for it, as a query adds it."""
    unit: str
    least: int
    most: int


@dataclass(frozen=True)
class World:
    """One domain: what it speaks of, its figures, and what its documents say about one term."""

    key: str
    one: str
    many: str
    other: str
    """Another word for `many`."""
    names: tuple[str, ...]
    money: Attribute
    count: Attribute
    measure: Attribute
    term: str
    definition: tuple[str, ...]
    steps: tuple[str, ...]
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    background: str
    """Common background about `beyond`, without figures, hedged."""
    beyond: str
    """A general notion that the documents of this world do not treat."""


WORLDS: Final[tuple[World, ...]] = (
    World(
        "lamps",
        "desk lamp",
        "desk lamps",
        "table lights",
        ("Lumen X2", "Aurora Mini", "Helios Pro", "Vela Forty"),
        Attribute("price", "cost", "EUR", 19, 240),
        Attribute("stock", "inventory", "pieces", 3, 900),
        Attribute("weight", "mass", "g", 300, 2400),
        "dimming curve",
        (
            "A dimming curve maps the position of the slider to the brightness of the lamp.",
            "Our lamps use a logarithmic dimming curve, because the eye reacts to ratios.",
        ),
        (
            "Hold the dimming curve button until the lamp blinks.",
            "Turn the slider of the dimming curve to its lower end and wait for the beep.",
            "Release the button to store the dimming curve in the lamp.",
        ),
        (
            "The dimming curve may be changed by service partners only.",
            "A changed dimming curve has to be noted on the warranty card.",
        ),
        (
            "A linear dimming curve looks jumpy because small steps stand out in the dark.",
            "The driver smooths the dimming curve so that neighbouring steps blend.",
        ),
        "colour rendering usually describes how natural objects look under a lamp, although makers may word it differently.",
        "colour rendering",
    ),
    World(
        "staff",
        "consultant",
        "consultants",
        "advisers",
        ("Marta Kowalczyk", "Jonas Brandt", "Aiko Tanaka", "Rui Almeida"),
        Attribute("day rate", "daily fee", "EUR", 480, 1600),
        Attribute("project count", "assignments", "projects", 1, 40),
        Attribute("seniority", "years of service", "years", 1, 30),
        "bench time",
        (
            "Bench time is the time in which a consultant is not booked on a project.",
            "Bench time is counted in whole days and shown in the staffing plan.",
        ),
        (
            "Open the staffing plan and mark the free days as bench time.",
            "Choose a training for the bench time together with the team lead.",
            "Confirm the bench time before the end of the week.",
        ),
        (
            "Bench time has to be reported to the team lead before it begins.",
            "During bench time consultants stay reachable for short inquiries.",
        ),
        (
            "Bench time rises in summer because customers postpone their starts.",
            "Short contracts lead to more bench time than framework agreements.",
        ),
        "mentoring generally means that an experienced colleague accompanies a newer one, though practice may vary between firms.",
        "mentoring",
    ),
    World(
        "mills",
        "milling machine",
        "milling machines",
        "machining centres",
        ("Ferrox MX", "Kantor Delta", "Tempo King", "Orbis Five"),
        Attribute("purchase price", "acquisition cost", "EUR", 42000, 310000),
        Attribute("operating hours", "running time", "hours", 120, 22000),
        Attribute("spindle speed", "rotation", "rpm", 6000, 24000),
        "backlash compensation",
        (
            "Backlash compensation corrects the play of the ball screws when an axis reverses.",
            "Backlash compensation is stored per axis in the control.",
        ),
        (
            "Mount the dial gauge on the table and home the axis before the backlash compensation.",
            "Reverse the axis and write down the difference for the backlash compensation.",
            "Enter the difference into the backlash compensation page and save it.",
        ),
        (
            "Backlash compensation must be renewed after every change of a ball screw.",
            "Only trained setters may edit the backlash compensation.",
        ),
        (
            "Backlash compensation drifts because the nuts of the ball screws wear.",
            "A warm machine needs less backlash compensation since the screws expand.",
        ),
        "chatter is commonly understood as vibration between tool and part, and its causes can differ from shop to shop.",
        "chatter",
    ),
    World(
        "soups",
        "soup",
        "soups",
        "broths",
        ("Harira", "Borscht", "Caldo Verde", "Tom Kha"),
        Attribute("portion cost", "expense per bowl", "EUR", 1, 9),
        Attribute("portions", "servings", "bowls", 20, 180),
        Attribute("cooking time", "duration", "minutes", 20, 240),
        "mise en place",
        (
            "Mise en place means that every ingredient is cut, weighed and within reach before cooking.",
            "In our kitchen the mise en place is checked by the sous chef.",
        ),
        (
            "Read the card and weigh the ingredients for the mise en place.",
            "Put the trays of the mise en place in the order of use.",
            "Let the sous chef sign the mise en place list.",
        ),
        (
            "The mise en place has to be covered and cooled until service.",
            "Leftovers of the mise en place are discarded at closing.",
        ),
        (
            "Mise en place saves time because nobody leaves the stove during service.",
            "A poor mise en place leads to overcooked vegetables.",
        ),
        "umami is often described as a savoury taste, but how strongly people notice it may vary.",
        "umami",
    ),
    World(
        "trials",
        "clinical trial",
        "clinical trials",
        "studies",
        ("Orion Seven", "Calyx Blue", "Meridian Heart", "Sabal Sleep"),
        Attribute("budget", "funding", "EUR", 90000, 4200000),
        Attribute("participants", "enrolment", "patients", 24, 800),
        Attribute("duration", "length", "weeks", 6, 160),
        "washout period",
        (
            "A washout period is the span without treatment between two arms of a crossover study.",
            "The washout period lets the first drug leave the body.",
        ),
        (
            "Stop the study drug and note the first day of the washout period.",
            "Call the patient once a week during the washout period.",
            "Take a blood sample at the end of the washout period.",
        ),
        (
            "The washout period may not be shortened without consent of the ethics board.",
            "Patients may leave during the washout period without giving reasons.",
        ),
        (
            "A washout period prevents carry-over effects from the first arm.",
            "Drugs that stay in the body longer need a longer washout period.",
        ),
        "blinding typically means that people in a study do not know who gets which treatment, with details that may differ by design.",
        "blinding",
    ),
    World(
        "tariffs",
        "insurance tariff",
        "insurance tariffs",
        "cover plans",
        ("HomeShield Basic", "HomeShield Extra", "RoofGuard", "FloodCare"),
        Attribute("premium", "yearly fee", "EUR", 60, 980),
        Attribute("contracts", "policies in force", "contracts", 200, 40000),
        Attribute("deductible", "excess", "EUR", 50, 1500),
        "waiting period",
        (
            "The waiting period is the time between signing and the first day on which damage is covered.",
            "During the waiting period the contract exists but pays nothing.",
        ),
        (
            "Enter the signing day and the waiting period in the claim form.",
            "Compare the day of the damage with the end of the waiting period.",
            "Reject the claim politely if it falls into the waiting period.",
        ),
        (
            "The waiting period is waived for customers who switch without a gap.",
            "A waiting period has to be stated on the first page of the offer.",
        ),
        (
            "A waiting period keeps people from insuring damage that they already see coming.",
            "Flood cover has a longer waiting period because storms are announced.",
        ),
        "reinsurance is broadly the insurance of insurers, and how it is arranged may differ a lot.",
        "reinsurance",
    ),
    World(
        "voyages",
        "expedition",
        "expeditions",
        "voyages",
        ("Nordlys", "Santa Brisa", "Halcyon", "Morgenstern"),
        Attribute("outlay", "expenses", "crowns", 900, 88000),
        Attribute("crew", "sailors", "people", 12, 190),
        Attribute("journey length", "days at sea", "days", 40, 900),
        "dead reckoning",
        (
            "Dead reckoning estimates a position from course, speed and time since the last fix.",
            "The logbooks of the collection use dead reckoning wherever the sky was covered.",
        ),
        (
            "Throw the log and note the speed for the dead reckoning.",
            "Draw the course from the last fix as the dead reckoning demands.",
            "Mark the end of the line as the dead reckoning position.",
        ),
        (
            "Dead reckoning positions are shown in grey on every map of the museum.",
            "A dead reckoning position must never be quoted without its last fix.",
        ),
        (
            "Dead reckoning fails near strong currents because the drift stays unseen.",
            "Long nights make dead reckoning worse since errors add up.",
        ),
        "scurvy is widely thought of as an illness of long voyages without fresh food, though accounts can differ.",
        "scurvy",
    ),
    World(
        "trams",
        "tram line",
        "tram lines",
        "streetcar routes",
        ("Ringlinie", "Hafenbahn", "Waldexpress", "Altstadtlinie"),
        Attribute("fare", "ticket cost", "EUR", 2, 8),
        Attribute("stops", "stations", "stops", 9, 48),
        Attribute("track length", "distance", "km", 4, 31),
        "headway",
        (
            "Headway is the time between two trams of one line at the same stop.",
            "The timetable states the headway for every hour of the day.",
        ),
        (
            "Look at the last departure before you announce the headway.",
            "Hold the tram at the stop until the headway is restored.",
            "Report the new headway to the control room.",
        ),
        (
            "The headway may be doubled on nights before a holiday.",
            "Drivers do not change the headway on their own.",
        ),
        (
            "A short headway bunches the trams because delays hand themselves on.",
            "Level boarding makes a steady headway easier.",
        ),
        "regenerative braking generally feeds energy back while a vehicle slows down, and how much is regained may vary.",
        "regenerative braking",
    ),
    World(
        "wines",
        "wine",
        "wines",
        "vintages",
        ("Steinhang Riesling", "Quinta Velha", "Clos du Merle", "Monte Ardo"),
        Attribute("bottle price", "cost per bottle", "EUR", 6, 74),
        Attribute("bottles", "cellar inventory", "bottles", 60, 12000),
        Attribute("residual sugar", "sweetness", "g/l", 1, 90),
        "malolactic fermentation",
        (
            "Malolactic fermentation turns sharp malic acid into softer lactic acid.",
            "Our red wines go through malolactic fermentation in the barrel.",
        ),
        (
            "Warm the cellar before the malolactic fermentation starts.",
            "Add the culture for the malolactic fermentation and close the barrel loosely.",
            "Taste weekly until the malolactic fermentation has ended.",
        ),
        (
            "Malolactic fermentation is not allowed for the Riesling of the estate.",
            "Every malolactic fermentation has to be entered in the cellar book.",
        ),
        (
            "Malolactic fermentation stalls in cold cellars because the bacteria rest.",
            "Sulphur stops the malolactic fermentation since it kills the culture.",
        ),
        "terroir commonly stands for the influence of place on taste, and people may disagree on how much it matters.",
        "terroir",
    ),
    World(
        "plans",
        "storage plan",
        "storage plans",
        "cloud packages",
        ("Cirrus Small", "Cirrus Team", "Stratus", "Nimbus Archive"),
        Attribute("monthly fee", "subscription price", "EUR", 3, 190),
        Attribute("seats", "user licences", "seats", 1, 250),
        Attribute("capacity", "space", "GB", 50, 9000),
        "cold tier",
        (
            "The cold tier keeps objects that are read less than once a quarter.",
            "Objects of the cold tier stay encrypted with the key of the customer.",
        ),
        (
            "Select the folder and move it to the cold tier.",
            "Wait for the mail that confirms the cold tier.",
            "Check the report of the cold tier for objects that failed.",
        ),
        (
            "Data in the cold tier is not deleted without a written request.",
            "The cold tier may not hold data of open legal cases.",
        ),
        (
            "The cold tier is slow because the disks are spun down.",
            "Reading many small objects from the cold tier takes longer than one large object.",
        ),
        "deduplication typically means that equal pieces of data are kept only once, though products may differ in how they do it.",
        "deduplication",
    ),
    World(
        "trees",
        "park tree",
        "park trees",
        "street trees",
        ("Silver Lime", "Turkish Hazel", "Field Maple", "Honey Locust"),
        Attribute("sapling price", "nursery cost", "EUR", 90, 700),
        Attribute("planted trees", "plantings", "trees", 4, 1300),
        Attribute("final height", "growth", "m", 6, 35),
        "crown reduction",
        (
            "Crown reduction shortens the outer branches while the shape of the tree is kept.",
            "Crown reduction is done in late winter in our parks.",
        ),
        (
            "Inspect the branches before you plan the crown reduction.",
            "Cut back to a side branch during the crown reduction.",
            "Record the crown reduction in the tree register.",
        ),
        (
            "Crown reduction needs a permit between spring and autumn.",
            "No crown reduction may take away nests that are in use.",
        ),
        (
            "Crown reduction lowers the wind load because the sail area shrinks.",
            "Hard crown reduction weakens a tree since it loses leaves.",
        ),
        "mycorrhiza is generally described as a partnership of fungi and roots, with details that may depend on the species.",
        "mycorrhiza",
    ),
    World(
        "courses",
        "evening course",
        "evening courses",
        "adult classes",
        ("Polish Beginners", "Bookbinding", "Bicycle Repair", "Watercolour"),
        Attribute("course fee", "tuition", "EUR", 35, 420),
        Attribute("places", "seats", "places", 6, 30),
        Attribute("lessons", "sessions", "lessons", 4, 28),
        "continuous assessment",
        (
            "Continuous assessment replaces the final exam by small tasks during the term.",
            "The tasks of the continuous assessment are marked by the course teacher.",
        ),
        (
            "Hand out the sheet for the continuous assessment in the first lesson.",
            "Collect the tasks of the continuous assessment every second week.",
            "Enter the marks of the continuous assessment in the portal.",
        ),
        (
            "Continuous assessment is open to everyone who attends regularly.",
            "A missed task of the continuous assessment may be made up once.",
        ),
        (
            "Continuous assessment lowers stress because no single day decides.",
            "Teachers like continuous assessment since they see gaps early.",
        ),
        "spaced repetition usually means reviewing material at growing intervals, though its effect may differ between learners.",
        "spaced repetition",
    ),
    World(
        "scopes",
        "telescope",
        "telescopes",
        "observing instruments",
        ("Sirius Newton", "Polaris Refractor", "Castor Dobson", "Vega Maksutov"),
        Attribute("list price", "retail cost", "EUR", 150, 5200),
        Attribute("loan count", "rentals", "loans", 1, 310),
        Attribute("focal length", "focus distance", "mm", 400, 2700),
        "collimation",
        (
            "Collimation is the alignment of the mirrors of a telescope along one axis.",
            "Good collimation shows as round rings around a defocused star.",
        ),
        (
            "Centre a bright star before the collimation.",
            "Turn the screws of the secondary mirror until the collimation rings are round.",
            "Tighten the screws and check the collimation again.",
        ),
        (
            "Collimation of loan telescopes is done by the club only.",
            "Each collimation has to be signed in the loan book.",
        ),
        (
            "Collimation gets lost in transport because the mirror cells shift.",
            "Poor collimation blurs planets more than nebulae.",
        ),
        "light pollution is usually taken to mean unwanted artificial light at night, and how much it disturbs may vary.",
        "light pollution",
    ),
    World(
        "ferries",
        "ferry",
        "ferries",
        "passenger ships",
        ("Seeadler", "Lady Inger", "Kormoran", "Blue Puffin"),
        Attribute("charter fee", "hire cost", "EUR", 700, 9400),
        Attribute("passengers", "guests", "people", 40, 620),
        Attribute("draught", "depth", "cm", 90, 410),
        "muster drill",
        (
            "A muster drill is the rehearsal in which passengers walk to their assembly stations.",
            "The muster drill is held before the ship leaves its first port.",
        ),
        (
            "Sound the alarm and announce the muster drill in three languages.",
            "Count the passengers at each station of the muster drill.",
            "Write the result of the muster drill into the log.",
        ),
        (
            "The muster drill is compulsory for everyone on board.",
            "No muster drill may be cancelled because of bad weather.",
        ),
        (
            "A muster drill shortens an evacuation because people know the way.",
            "Muster drill results get worse at night since many passengers are tired.",
        ),
        "ballast is commonly understood as weight that steadies a ship, although designs may handle it differently.",
        "ballast",
    ),
)
