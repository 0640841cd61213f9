//! The words the music store's names are put together from. All of them are made up into names of nobody.
//!
//! The order counts: a word moved or added changes the store's bytes.

/// Artists' and titles' first words.
pub(super) const QUALITIES: &[&str] = &[
    "Amber", "Borrowed", "Brass", "Careful", "Copper", "Crooked", "Distant", "Drowsy", "Electric", "Folded",
    "Gentle", "Glass", "Hollow", "Honest", "Indigo", "Late", "Lucky", "Marble", "Midnight", "Northern",
    "Paper", "Patient", "Quiet", "Restless", "Salted", "Second", "Slow", "Sudden", "Tidal", "Velvet",
];

/// Things, one of them.
pub(super) const THINGS: &[&str] = &[
    "Almanac",
    "Anchor",
    "Bicycle",
    "Cartographer",
    "Chimney",
    "Compass",
    "Ferry",
    "Garden",
    "Harbour",
    "Kettle",
    "Ladder",
    "Lantern",
    "Letter",
    "Lighthouse",
    "Meadow",
    "Orchard",
    "Parade",
    "Pendulum",
    "Postcard",
    "Quarry",
    "Radio",
    "River",
    "Satellite",
    "Signal",
    "Staircase",
    "Telegram",
    "Tram",
    "Umbrella",
    "Weathervane",
    "Winter",
];

/// Places, also of the sky.
pub(super) const PLACES: &[&str] = &[
    "Arctic",
    "Basement",
    "Coastline",
    "Corridor",
    "Delta",
    "Equator",
    "Fjord",
    "Frontier",
    "Hillside",
    "Lagoon",
    "Mezzanine",
    "Moon",
    "Peninsula",
    "Platform Nine",
    "Rooftop",
    "Seventh Floor",
    "Tundra",
    "Waiting Room",
];

/// What a song does or tells to do.
pub(super) const VERBS: &[&str] = &[
    "Chasing",
    "Counting",
    "Drawing",
    "Finding",
    "Following",
    "Keeping",
    "Leaving",
    "Mending",
    "Missing",
    "Painting",
    "Remembering",
    "Trading",
    "Waiting for",
    "Waking",
    "Watching",
];

/// Given names of customers and singers.
pub(super) const GIVEN_NAMES: &[&str] = &[
    "Alma", "Anton", "Beatriz", "Chiara", "Dario", "Edda", "Emil", "Fatima", "Greta", "Hugo", "Ines", "Ivo",
    "Jana", "Kaito", "Lena", "Liam", "Mara", "Mateo", "Nadia", "Noor", "Olga", "Oskar", "Priya", "Rafael",
    "Ruben", "Sanna", "Tomas", "Uma", "Vera", "Yusuf",
];

/// Family names, invented.
pub(super) const FAMILY_NAMES: &[&str] = &[
    "Ashgrove",
    "Bellwater",
    "Brightmoor",
    "Calderbank",
    "Coldbrook",
    "Dunmarsh",
    "Elderfield",
    "Fairholt",
    "Fenwhistle",
    "Greystone",
    "Hazelrow",
    "Ironside",
    "Juniperly",
    "Kingsmead",
    "Larkhollow",
    "Mapleton",
    "Nightengrove",
    "Oakhanger",
    "Pinecrest",
    "Quillfeather",
    "Ravenscar",
    "Silverbeck",
    "Thornapple",
    "Underhill",
    "Wrenfield",
];

/// Countries of artists and customers.
pub(super) const COUNTRIES: &[&str] = &[
    "Brazil",
    "Canada",
    "Czechia",
    "Denmark",
    "France",
    "Germany",
    "India",
    "Ireland",
    "Italy",
    "Japan",
    "Mexico",
    "Nigeria",
    "Norway",
    "Portugal",
    "Spain",
    "United Kingdom",
    "United States",
];

/// Genres; one that stands twice comes up twice as often.
pub(super) const GENRES: &[&str] = &[
    "Ambient",
    "Classical",
    "Electronic",
    "Electronic",
    "Folk",
    "Folk",
    "Hip-Hop",
    "Jazz",
    "Jazz",
    "Metal",
    "Reggae",
    "Rock",
    "Rock",
    "Rock",
    "Soul",
];
