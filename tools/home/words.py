# SPDX-License-Identifier: MIT
"""Words that made-up homes are built from: rooms, things, people, list items, music.

Everything here was written for this project. Lists hold no duplicates that matter:
a draw picks uniformly, so a word that should be common is listed twice on purpose.
"""


def _w(text):
    return [x.strip() for x in text.replace("\n", ",").split(",") if x.strip()]


ROOMS = _w("""
Kitchen, Kitchen, Living Room, Living Room, Bedroom, Bedroom, Bathroom, Hallway, Hall, Office, Study, Garage, Garden, Dining Room,
Kids Room, Nursery, Guest Room, Guest Bedroom, Master Bedroom, Main Bedroom, Laundry Room, Laundry, Utility Room, Basement, Attic, Loft,
Cellar, Pantry, Larder, Conservatory, Sunroom, Porch, Front Porch, Back Porch, Patio, Terrace, Deck, Balcony, Veranda, Driveway,
Front Yard, Back Yard, Backyard, Carport, Shed, Workshop, Greenhouse, Library, Playroom, Game Room, Media Room, Home Theater, Cinema Room,
Gym, Sauna, Spa, Pool House, Pool, Barn, Stable, Studio, Den, Family Room, Great Room, Lounge, Sitting Room, Drawing Room, Parlor, Snug,
Foyer, Entryway, Entrance, Entrance Hall, Lobby, Vestibule, Mudroom, Boot Room, Cloakroom, Closet, Walk In Closet, Wardrobe, Dressing Room, Toilet, WC,
Powder Room, En Suite, Ensuite, Shower Room, Wet Room, Washroom, Landing, Upstairs Hall, Stairs, Staircase, Stairwell, Corridor, Galley, Scullery, Breakfast Room,
Breakfast Nook, Bar, Wine Cellar, Music Room, Piano Room, Art Room, Craft Room, Sewing Room, Hobby Room, Server Room, Boiler Room,
Storage Room, Store Room, Box Room, Spare Room, Tool Shed, Garden Room, Summer House, Gazebo, Courtyard, Roof Terrace, Rooftop,
Front Room, Back Room, Reading Room, Reading Corner, Meditation Room, Prayer Room, Classroom, Meeting Room, Conference Room, Reception, Break Room, Lab,
Treehouse, Cabin, Cottage, Annex, Annexe, Granny Flat, Tack Room, Chicken Coop, Orchard, Vegetable Garden, Herb Garden, Pond, Jetty, Boathouse,
Rec Room, Rumpus Room, Man Cave, Craft Corner, Nook, Alcove, Mezzanine, Gallery, Archive, Darkroom, Print Room, Kitchenette, Dinette, Bunk Room, Dorm""")

ROOM_MODS = _w("""
North, South, East, West, Upper, Lower, Upstairs, Downstairs, Front, Back, Small, Big, Little, Old, New, Blue, Green, Red, Yellow, White,
Main, Second, First Floor, Inner, Outer, Corner, Left, Right, Summer, Winter, Quiet""")

ROOM_ALIASES = {
    "Living Room": ["lounge", "sitting room", "front room", "family room", "parlor"],
    "Kitchen": ["cookhouse", "galley", "cooking area"],
    "Bathroom": ["washroom", "restroom", "loo", "bath"],
    "Hallway": ["hall", "corridor", "entrance", "passage"],
    "Office": ["study", "workroom", "home office", "den"],
    "Study": ["office", "home office", "library"],
    "Garden": ["backyard", "back yard", "yard", "outside"],
    "Master Bedroom": ["our bedroom", "main bedroom", "primary bedroom", "bedroom"],
    "Main Bedroom": ["master bedroom", "our room", "bedroom"],
    "Kids Room": ["children's room", "nursery", "playroom"],
    "Guest Room": ["spare room", "guest bedroom", "visitors room"],
    "Garage": ["car port", "carport"],
    "Basement": ["cellar", "downstairs"],
    "Attic": ["loft", "top room"],
    "Laundry Room": ["utility room", "wash room", "laundry"],
    "Dining Room": ["dining area", "dinner room"],
    "Balcony": ["terrace"],
    "Patio": ["terrace", "deck"],
}

FLOORS = [
    [("Ground Floor", ["downstairs"]), ("First Floor", ["upstairs"])],
    [("Ground Floor", []), ("Upper Floor", ["upstairs"])],
    [("Downstairs", []), ("Upstairs", [])],
    [("First Floor", ["main floor", "downstairs"]), ("Second Floor", ["upstairs"])],
    [("Main Level", ["main floor"]), ("Upper Level", ["upstairs"]), ("Basement", ["lower level"])],
    [("Basement", ["cellar"]), ("Ground Floor", []), ("First Floor", []), ("Attic Floor", ["top floor"])],
    [("Lower Deck", []), ("Upper Deck", [])],
    [("Main Floor", []), ("Top Floor", ["upstairs"])],
    [("Garden Level", []), ("Street Level", []), ("Penthouse", ["top floor"])],
    [("Level One", []), ("Level Two", [])],
    [("North Wing", []), ("South Wing", [])],
    [("Downstairs", ["ground floor"]), ("Upstairs", ["first floor", "bedroom floor"]), ("Loft Floor", [])],
]

PEOPLE = _w("""
Anna, Ben, Tom, Lucy, Emma, Jack, Sophie, Max, Leo, Mia, Oliver, Grace, Sam, Nina, Paul, Clara, Hugo, Ida, Felix, Rosa, Marta, Jonas, Lena, Oscar,
Peter, Maria, Daniel, Laura, Chris, Julia, David, Sarah, Michael, Kate, Alex, Nora, Eric, Amy, Greg, Helen, Ivan, Jenny, Karl, Lisa, Matt, Naomi, Owen, Pia,
Quinn, Ruth, Steve, Tina, Victor, Wendy, Yusuf, Zoe, Priya, Arjun, Mei, Hiro, Fatima, Omar, Ingrid, Sven, Bridget, Declan, Kofi, Amara, Diego, Carmen,
Grandma, Grandpa, Mom, Dad, Mum, Baby, Nanny""")

PLACES = _w("""
Desk, Floor, Bedside, Ceiling, Corner, Window, Reading, Wall, Mirror, Island, Counter, Shelf, Bookcase, Piano, Table, Sofa, Couch, Vanity, Closet, Door, Stair,
Step, Sink, Stove, Oven, Cabinet, Under Cabinet, Cupboard, Fireplace, Mantel, Painting, Picture, Plant, Aquarium, Bed, Bunk, Crib, Armchair, Workbench, Bench,
Bar, Dresser, Nightstand, Headboard, Balcony, Path, Pathway, Driveway, Gate, Fence, Tree, Pond, Pool, Deck, Porch, Entrance, Front, Back, Side, Left, Right, Middle, Center, Upper, Lower,
Main, Small, Big, Large, Little, Tall, Old, New, Round, Square, Long, Short, North, South, East, West, Skylight, Roof, Gable, TV, Media, Display, Monitor, Study, Work, Task, Accent, Ambient,
Mood, Evening, Morning, Night, Party, Holiday, Christmas, Outdoor, Indoor, Hanging, Standing, Glass, Paper, Brass, Copper, Wooden, Crystal, Globe, Moon, Sun, Star, Cloud, Lava, Salt, Candle""")

COLORS = _w("""red, green, blue, yellow, orange, purple, pink, white, cyan, magenta, turquoise, violet, teal, gold, lavender, lime, indigo, amber, coral, salmon, brown, maroon""")
COLORS_COMMON = _w("""red, green, blue, yellow, orange, purple, pink, white""")

NOUNS = {
    "light": _w("""Light, Light, Light, Light, Lights, Lights, Lamp, Lamp, Lamp, Lamps, Spotlight, Spotlights, Spots, LED Strip, Light Strip, Strip, Chandelier, Sconce,
        Pendant, Pendants, Lantern, Bulb, Bulbs, LEDs, Downlights, Downlight, Uplighter, String Lights, Fairy Lights, Floodlight, Floodlights, Striplight, Lightbar, Light Bar, Beam, Glow, Track Lights,
        Neon, Neon Sign, Panel, Light Panel, Cove Light, Rope Light, Torch, Lightbox, Backlight, Night Light"""),
    "switch": _w("""Plug, Socket, Outlet, Switch, Coffee Machine, Coffee Maker, Kettle, Toaster, Espresso Machine, Heater, Space Heater, Radiator, Boiler, Water Heater, Pump, Fountain, Sprinkler, Sprinklers, Irrigation,
        Humidifier, Dehumidifier, Air Purifier, Purifier, Printer, Router, Server, Computer, Monitor, Charger, Car Charger, Dishwasher, Washing Machine, Washer, Dryer, Freezer, Fridge, Oven, Microwave, Rice Cooker, Slow Cooker, Air Fryer,
        Aquarium, Aquarium Pump, Terrarium, Grow Lamp Plug, Electric Blanket, Heated Blanket, Towel Rail, Towel Warmer, Iron, Hair Dryer, Diffuser, Fireplace, Hot Tub, Jacuzzi, Pool Pump, Pond Pump, Bug Zapper, Doorbell, Siren, Amplifier,
        Receiver, Console, Arcade Machine, Projector Plug, Christmas Tree, Sewing Machine, Table Saw, Compressor, Treadmill, Massage Chair, Blender, Waffle Iron, Grill, Smoker, Wine Cooler, Ice Maker, Camera, Intercom, Ventilation, Air Pump"""),
    "fan": _w("""Fan, Fan, Fan, Ceiling Fan, Ceiling Fan, Tower Fan, Desk Fan, Floor Fan, Box Fan, Extractor Fan, Exhaust Fan, Bathroom Fan, Extractor, Hood, Cooker Hood, Range Hood, Ventilator, Air Circulator, Pedestal Fan, Vent Fan, Blower, Stand Fan"""),
    "climate": _w("""Thermostat, Thermostat, Thermostat, Heating, Heater, Radiator, AC, Air Conditioner, Air Conditioning, Heat Pump, Climate, Floor Heating, Underfloor Heating, Radiator Valve, Mini Split, Furnace, Central Heating, Cooler"""),
    "lock": _w("""Door, Front Door, Back Door, Side Door, Door Lock, Lock, Front Door Lock, Gate, Gate Lock, Deadbolt, Main Door, Patio Door, Cellar Door, Entrance, Mailbox, Safe, Gun Safe, Shed Door, Garage Side Door, Smart Lock, Latch, Office Door, Kitchen Door, Balcony Door, Service Door"""),
    "media_player": _w("""TV, TV, TV, Television, Speaker, Speaker, Speaker, Speakers, Soundbar, Stereo, Radio, Sound System, Hi Fi, Record Player, Turntable, Boombox, Music Player, Projector, Display, Smart Display, Jukebox, Receiver, Streaming Box, Subwoofer, Media Center, Surround System, Screen, Clock Radio"""),
    "vacuum": _w("""Vacuum, Robot Vacuum, Vacuum Cleaner, Robot, Hoover, Sweeper, Cleaner, Mop, Robot Mop, Floor Cleaner, Cleaning Robot"""),
    "lawn_mower": _w("""Mower, Lawn Mower, Robot Mower, Lawnmower, Mowing Robot, Grass Cutter"""),
}
COVERS = {  # device class: nouns
    "blind": _w("Blind, Blinds, Blinds, Roller Blind, Venetian Blinds, Roman Blind, Skylight Blind, Blackout Blind"),
    "curtain": _w("Curtain, Curtains, Curtains, Drapes, Drape, Blackout Curtains, Sheer Curtains, Net Curtains"),
    "shade": _w("Shade, Shades, Roller Shade, Window Shade, Sun Shade, Cellular Shades, Sunshade"),
    "shutter": _w("Shutter, Shutters, Roller Shutter, Rolling Shutters, Window Shutters"),
    "garage": _w("Garage Door, Garage Door, Garage, Big Garage Door, Overhead Door, Roller Door"),
    "awning": _w("Awning, Awning, Sun Sail, Canopy, Patio Awning"),
    "gate": _w("Gate, Driveway Gate, Sliding Gate, Yard Gate, Front Gate"),
    "window": _w("Window, Skylight, Roof Window, Roof Hatch, Vent Window"),
    "door": _w("Sliding Door, Cat Flap, Coop Door, Barn Door, Pet Door, Hatch"),
}
SWITCH_CLASSES = {"Plug": "outlet", "Socket": "outlet", "Outlet": "outlet"}

SENSORS = {  # device class: (nouns, unit, lowest, highest, decimals)
    "temperature": (_w("Temperature, Thermometer, Temperature Sensor, Temp"), None, -5, 32, 1),
    "humidity": (_w("Humidity, Humidity Sensor, Hygrometer"), "%", 20, 95, 0),
    "battery": (_w("Battery, Battery Level"), "%", 1, 100, 0),
    "power": (_w("Power, Power Meter, Power Usage, Consumption"), "W", 0, 4200, 0),
    "energy": (_w("Energy, Energy Meter, Energy Today"), "kWh", 0, 60, 1),
    "carbon_dioxide": (_w("CO2, Carbon Dioxide, Air Quality"), "ppm", 380, 2200, 0),
    "illuminance": (_w("Light Sensor, Brightness Sensor, Illuminance"), "lx", 0, 9000, 0),
    "wind_speed": (_w("Wind, Wind Speed"), "km/h", 0, 80, 0),
    "water": (_w("Water Level, Tank Level, Rain Barrel"), "%", 0, 100, 0),
}
BINARY = {  # device class: (nouns, off word, on word)
    "window": (_w("Window, Window Sensor, Window Contact, Skylight Sensor, Left Window, Right Window"), "closed", "open"),
    "door": (_w("Door Sensor, Door Contact, Fridge Door, Freezer Door, Cupboard Door, Gate Sensor, Mailbox Sensor"), "closed", "open"),
    "motion": (_w("Motion, Motion Sensor, Motion Detector"), "clear", "detected"),
    "moisture": (_w("Leak Sensor, Water Sensor, Leak Detector"), "dry", "wet"),
    "smoke": (_w("Smoke Alarm, Smoke Detector, Smoke Sensor"), "clear", "detected"),
    "occupancy": (_w("Presence, Occupancy, Presence Sensor"), "clear", "detected"),
    "plug": (_w("Car Plug, Charger Cable"), "unplugged", "plugged in"),
}

SCENES = _w("""
Movie Night, Movie Time, Cinema, Good Morning, Good Night, Bedtime, Dinner, Dinner Time, Dinner Party, Party, Party Mode, Romantic, Date Night, Relax, Relaxing, Reading, Focus, Work, Working, Concentrate, Sunset, Sunrise, Ocean, Forest, Tropical, Arctic,
Christmas, Halloween, Cozy, Cosy Evening, Evening, Morning, Wake Up, Nightlight, Gaming, Game Night, Cooking, Cleaning, Yoga, Meditation, Away, Home, Leaving, Vacation, Holiday, Guests, Homework, Study Time, Bright, Dimmed, Energize, Chill, Spa Time, Bath Time, Story Time, Siesta, Lights Out, Rainy Day, Northern Lights, Campfire, Candlelight, Football Night, Disco""")
SCRIPTS = _w("""Good Night, Goodbye, Leaving Home, Coming Home, Arrive Home, Start The Day, Lock Up, Lockdown, Water The Plants, Feed The Fish, Feed The Cat, Feed The Dog, Morning Routine, Evening Routine, Bedtime Routine, Open The House, Close The House, Air The House, Wake The Kids, Panic, Vacation Mode, Guest Mode, Coffee Time, Laundry Done, Clean Up, Warm The Car, Start The Sauna, Dinner Bell""")
LISTS = _w("""Shopping List, Shopping List, Shopping List, Groceries, Grocery List, To Do, To Do List, Todo, Chores, Tasks, Errands, Packing List, Wish List, Hardware Store, Garden Jobs, Homework, Party List, Books To Read, Movies To Watch, Christmas Gifts, Repairs, Work, Pharmacy""")

ITEMS = _w("""
milk, bread, eggs, butter, cheese, yogurt, coffee, tea, sugar, flour, salt, pepper, rice, pasta, spaghetti, noodles, tomatoes, onions, garlic, potatoes, carrots, apples, bananas, oranges, lemons, limes, grapes, strawberries, blueberries, avocados, lettuce, spinach, broccoli,
cucumber, mushrooms, chicken, beef, bacon, ham, sausages, salmon, tuna, shrimp, olive oil, vinegar, ketchup, mustard, mayonnaise, honey, jam, peanut butter, chocolate, cookies, chips, crackers, cereal, oatmeal, oat milk, almond milk, orange juice, apple juice, beer, red wine, white wine, sparkling water, soda, ice cream,
frozen pizza, frozen peas, toilet paper, paper towels, dish soap, laundry detergent, shampoo, conditioner, toothpaste, toothbrushes, soap, razor blades, batteries, light bulbs, trash bags, cat food, dog food, cat litter, diapers, baby wipes, band aids, aspirin, cough syrup, candles, matches, napkins, aluminum foil, sponges, bleach,
basil, parsley, cilantro, ginger, cinnamon, vanilla, yeast, baking powder, cream, sour cream, cream cheese, tofu, lentils, chickpeas, black beans, corn, tortillas, bagels, croissants, salsa, hummus, olives, pickles, walnuts, almonds, raisins, popcorn, maple syrup, soy sauce, coconut milk, stock cubes, printer paper, envelopes, stamps, wrapping paper, string, duct tape, screws, paint, sandpaper, a new mop, bird seed, potting soil, tomato seeds,
washing up liquid, washing powder, fabric softener, kitchen roll, cling film, baking paper, bin bags, dishwasher tablets, rinse aid, hand soap, hand cream, sun cream, lip balm, deodorant, shaving foam, cotton buds, cotton pads, tissues, plasters, painkillers, vitamins, contact lens solution, nail polish, hair gel, dental floss, mouthwash, sanitary towels, nappies, baby food, formula, fish fingers, fish food, dog biscuits, hay, birdseed, guinea pig food, minced beef, lamb chops, pork chops, chicken thighs, chicken breast, turkey slices, salami, smoked salmon, prawns, anchovies, cod, cottage cheese, parmesan, mozzarella, feta, cheddar, double cream, custard, margarine, skimmed milk, soy milk, buttermilk, greek yogurt, sourdough, rye bread, burger buns, pita bread, wraps, crumpets, muffins, pancakes, waffles, muesli, granola, porridge oats, couscous, quinoa, bulgur, polenta, kidney beans, baked beans, tinned tomatoes, tomato paste, coconut cream, curry paste, chili flakes, paprika, cumin, oregano, thyme, rosemary, bay leaves, nutmeg, black pepper, sea salt, icing sugar, brown sugar, cocoa powder, chocolate chips, marzipan, golden syrup, treacle, marmalade, nutella, sunflower oil, sesame oil, balsamic vinegar, fish sauce, hot sauce, barbecue sauce, pesto, gravy granules, stuffing, crisps, pretzels, peanuts, cashews, pistachios, dried apricots, dates, rice cakes, chewing gum, gummy bears, ice cubes, lemonade, cola, tonic water, ginger beer, cider, gin, prosecco, decaf coffee, espresso beans, green tea, chamomile tea, peppermint tea, cranberry juice, celery, leeks, courgettes, aubergine, sweet potatoes, beetroot, radishes, cabbage, kale, rocket, cauliflower, peas, green beans, asparagus, fennel, pumpkin, spring onions, red onions, pears, plums, peaches, melon, mango, pineapple, kiwis, cherries, raspberries, a birthday card, gift bags, sellotape, glue, a phone charger, an extension lead, a screwdriver, nails, wall plugs, wood glue, masking tape, a paint roller, weed killer, compost, grass seed, tulip bulbs, firewood, charcoal, lighter fluid, a lightbulb for the hall, fuses, a doormat, coat hangers, a shower curtain, pillowcases, batteries for the remote""")
TASKS = _w("""
call the dentist, pay the rent, wash the car, clean the windows, water the plants, mow the lawn, fix the faucet, take out the trash, walk the dog, book a flight, renew the passport, buy a gift for mom, vacuum the stairs, change the sheets, clean the oven, return the library books, pick up the parcel, iron the shirts, empty the dishwasher,
charge the drill, order new filters, write to grandma, paint the fence, clean the gutters, sharpen the knives, descale the kettle, defrost the freezer, back up the photos, email the landlord, get a haircut, schedule the vet, sort the garage, hang the pictures, fix the bike, oil the hinges, replace the smoke alarm battery, file the taxes, plan the party,
buy concert tickets, print the forms, sew the button, prune the roses, plant the bulbs, sweep the patio, clean the grill, check the tires, cancel the gym, pick up the dry cleaning, bake a cake, drop off the donations,
renew the car insurance, book the car in for a service, check the tyre pressure, return the parcel, reply to the school, sign the permission slip, pay the gas bill, pay the electricity bill, cancel the subscription, update the address, order a new bank card, call the bank, call the plumber, ring the electrician, book a dentist appointment, make a doctor's appointment, collect the prescription, take the cat to the vet, worm the dog, clean the fish tank, clean out the fridge, wipe the shelves, dust the bookcase, hoover the car, wash the curtains, mend the fence, bleed the radiators, insulate the loft, unblock the sink, fix the dripping tap, tighten the door handle, change the light bulb, put up the shelf, assemble the desk, paint the bathroom, fill the holes, order the paint, measure the window, buy new shoes for the kids, label the school uniform, find a babysitter, invite the neighbours, bake something for the fair, write the thank you cards, post the letter, print the boarding passes, pack the suitcases, water next door's plants, learn the lines, practise the piano, finish the essay, hand in the homework, study for the exam, read chapter five, update the spreadsheet, send the invoice, prepare the slides, email the accountant, phone the insurance, book a table for friday, reserve the campsite, choose a wallpaper, sell the old bike, donate the clothes, recycle the bottles, sort the post, shred the papers, scan the receipts, change the password, charge the camera, clear the gutters, rake the leaves, turn the compost, cut the hedge, sow the carrots, tie up the tomatoes, treat the deck, drain the hose, put the bins out, stack the logs, sweep the chimney""")
BOOKS = _w("""warm socks, sunscreen, passport, swimsuit, sunglasses, phone charger, hiking boots, rain jacket, toothbrush, sleeping bag, headphones, travel pillow, camera, first aid kit, water bottle, hat, gloves, scarf, umbrella, novel""")

ARTISTS = _w("""
miles davis, the beatles, queen, nina simone, david bowie, adele, bob dylan, johnny cash, taylor swift, daft punk, radiohead, coldplay, fleetwood mac, pink floyd, led zeppelin, stevie wonder, aretha franklin, elvis presley, frank sinatra, ella fitzgerald, louis armstrong, billie holiday, john coltrane, mozart, beethoven, bach, chopin, vivaldi,
the rolling stones, abba, prince, madonna, michael jackson, whitney houston, bruce springsteen, tom waits, leonard cohen, joni mitchell, neil young, simon and garfunkel, the doors, jimi hendrix, nirvana, pearl jam, metallica, iron maiden, u two, the cure, the smiths, joy division, new order, depeche mode, kraftwerk, bjork, sigur ros, enya, norah jones, amy winehouse,
otis redding, marvin gaye, al green, ray charles, bill withers, bob marley, jimmy cliff, santana, gipsy kings, buena vista social club, cesaria evora, edith piaf, ludovico einaudi, hans zimmer, john williams, philip glass, arvo part, glenn gould""")
SONGS = _w("""
blue in green, yesterday, landslide, hallelujah, imagine, bohemian rhapsody, purple rain, wonderwall, heroes, let it be, hey jude, superstition, respect, so what, take five, summertime, clair de lune, moonlight sonata, dancing queen, hotel california, stairway to heaven, space oddity, africa, take on me, dreams, jolene, ring of fire, feeling good, harvest moon, blue monday, one more time,
here comes the sun, what a wonderful world, stand by me, three little birds, redemption song, good vibrations, every breath you take, with or without you, creep, karma police, smells like teen spirit, black, nothing else matters, the four seasons, happy birthday, twinkle twinkle little star, the wheels on the bus, silent night, jingle bells, white christmas, river, both sides now""")
ALBUMS = _w("""
kind of blue, abbey road, rumours, thriller, the wall, nevermind, ok computer, graceland, tapestry, pet sounds, blue train, purple rain, discovery, back to black, the joshua tree, harvest, exile on main street, blood on the tracks, homogenic, dark side of the moon, moon safari, in rainbows, parachutes, legend, songs in the key of life, innervisions, a love supreme, time out, getz gilberto, the goldberg variations""")
GENRES = _w("""jazz, rock, classical music, some blues, country music, hip hop, reggae, techno, house music, folk, soul, funk, disco, bossa nova, ambient music, lo fi beats, piano music, christmas music, heavy metal, punk, opera, swing, film music, k pop, salsa, relaxing music, sleep sounds, rain sounds, white noise, ocean sounds, bird song, whale song, dinner music, party music, workout music, kids songs, lullabies, nursery rhymes, the news, some music, something calm, something upbeat, eighties hits, nineties hits, sixties music""")
PLAYLISTS = _w("""workout, road trip, dinner, party, chill, focus, sleep, morning coffee, summer hits, sunday morning, running, cooking, study, throwback, rainy day, deep house, my favorites, discover weekly, road trip two, family, garden, top fifty, love songs, beach, campfire songs""")
PODCASTS = _w("""the daily, radiolab, this american life, serial, planet money, hardcore history, science weekly, the history hour, ted talks, freakonomics, stuff you should know, the moth, song exploder, more or less, in our time, the infinite monkey cage""")
MOVIES = _w("""casablanca, the matrix, star wars, toy story, jaws, alien, inception, frozen, finding nemo, the godfather, amelie, blade runner, back to the future, home alone, the lion king, psycho, vertigo, spirited away, paddington, the big lebowski, up, ratatouille, mary poppins, singing in the rain""")
SHOWS = _w("""friends, seinfeld, the office, planet earth, doctor who, sherlock, peppa pig, bluey, sesame street, star trek, the simpsons, breaking bad, the crown, bake off, cheers, frasier, fawlty towers, the wire, the muppets, cosmos""")
TITLES = _w("""Blue Train, Harvest Moon, Yesterday, Landslide, So What, Take Five, Clair de Lune, Heroes, Africa, Dreams, Jolene, Imagine, Radio Four, Jazz Radio, Morning News, River, Summertime, Hurt, Clocks, Yellow, Creep, Halo, Kashmir, Gymnopedie, Bolero, Nocturne, Roads, Teardrop, Hyperballad, Fast Car, Wild Horses, Vienna""")

TIMERS = _w("""pizza, pasta, egg, eggs, tea, coffee, bread, cake, cookie, cookies, rice, potato, oven, roast, chicken, turkey, steak, soup, laundry, washing, dryer, nap, workout, plank, meditation, break, study, homework, reading, game, screen time, bath, parking, meeting, call, bus, medicine, sauce, dough, brownie, lasagna, beans, quinoa, kettle, grill, barbecue, sauna, face mask, toothbrush, time out, garden, sprinkler""")
REMINDERS = _w("""take the cake out, check the oven, call mom, move the laundry, turn the steak, feed the cat, walk the dog, take the pizza out, take my pills, leave for work, pick up the kids, take out the trash, stir the sauce, check on the baby, flip the pancakes, stop working, drink some water, stretch, join the meeting, hang up the washing, water the plants, close the windows, call the doctor, get the kids, put the roast in, open the door, wake up the kids, turn the compost, move the car, preheat the oven""")
MESSAGES = _w("""
dinner is ready, lunch is ready, breakfast is on the table, it is time for bed, we are leaving in five minutes, the taxi is here, the bus is coming, come downstairs please, please be quiet, the movie is starting, who wants ice cream, i am home, i am going out, the washing is done, bath time, homework time, turn the music down, grandma is here, the pizza has arrived, there is a package at the door, somebody feed the dog, put your shoes on, school starts in twenty minutes, the pool is open, coffee is ready, the game is on, i need a hand in the garage, time to get up, the guests are here, please tidy your rooms, the internet is back, everyone in the car, happy birthday, it is snowing, the cake is ready, we need to talk, lights out in ten minutes, the baby is asleep, tea is ready, time to brush your teeth""")

# What there is to do with things: an errand is one of these and a thing that goes by in some home.
ERRANDS = _w("""
fix, fix, clean, replace, order, buy, sell, mend, paint, move, measure, check, check on, return, pick up, drop off, collect, wrap, pack, wash, iron, borrow, give back, throw out, put away, take down, hang up, set up, look for, ask about, call about, read about, book, cancel, renew, pay for, insure, dust, oil, empty, refill, descale, unplug, water, feed, varnish, label, sort out, tidy, get rid of, take a picture of""")
THINGS = _w("""
shower head, tap, sink, boiler, bath, toilet seat, mirror, drawer, door handle, letterbox, fence, gutter, chimney, roof tile, window sill, carpet, rug, curtain rail, lampshade, sofa, armchair, bookshelf, wardrobe, mattress, duvet, pillow, blanket, bicycle, scooter, pram, car seat, roof rack, trailer, tent, rucksack, suitcase, passport,
visa, tickets, licence, insurance, mortgage, rent, phone bill, water bill, tax return, invoice, contract, password, laptop, keyboard, headphones, hard drive, camera lens, tripod, projector, guitar, violin, drum kit, sheet music, paint brushes, easel, sewing kit, wool, pattern, costume, uniform, school bag, lunch box, gym shoes, football boots,
swimming goggles, tennis racket, skis, helmet, gloves, raincoat, wellies, wedding present, birthday present, cake tin, bread maker, pressure cooker, frying pan, wok, casserole dish, salad bowl, wine glasses, candlesticks, table cloth, napkin rings, high chair, play pen, doll's house, train set, jigsaw, board game, dictionary, cookbook,
library card, first aid kit, thermometer, prescription, glasses, hearing aid, walking stick, hedge, lawn edges, flower bed, pond liner, greenhouse glass, wheelbarrow, ladder, spade, hosepipe, paving slab, shed roof, bird table, rabbit hutch, dog lead, cat basket, aquarium filter, uncle, aunt, cousin, landlady, neighbour, gardener, roofer, tutor, coach, choir""")

# Things that a home might not have: for requests that must be declined.
ABSENT = _w("""
pool pump, hot tub, sauna, jacuzzi, skylight, dishwasher, washing machine, oven, microwave, toaster, chicken coop door, disco ball, fog machine, treadmill, garage heater, aquarium, fish tank, fountain, gate, elevator, dumbwaiter, doorbell, car charger, sprinklers, irrigation, greenhouse heater, beehive lamp, trampoline lights, wine fridge, ice maker, popcorn machine, jukebox, slot machine, pinball machine, telescope, drone, robot arm, alarm, siren,
humidifier, air purifier, dehumidifier, electric blanket, towel warmer, bidet, shower, bathtub, steam iron, coffee grinder, espresso machine, kettle, rice cooker, bread maker, waffle iron, air fryer, grill, smoker, fire pit, patio heater, bug zapper, lawn mower, hedge trimmer, leaf blower, snow blower, generator, solar panels, wind turbine, water heater, boiler, furnace, server rack, printer, scanner, laser cutter, three d printer, sewing machine, lava lamp, strobe light, black light, grow lights, heat lamp, terrarium,
bird bath heater, pond pump, well pump, sump pump, cellar door, attic hatch, storm shutters, projector screen, curtains, blinds, awning, drawbridge, barn door, stable lights, tack room fan, kennel heater, cat feeder, dog door, baby monitor, night light, christmas tree, nativity lights, pumpkin lights, snow machine, bubble machine, karaoke machine, record player, organ, fax machine, intercom, safe, vault, gun safe, mailbox""")
ABSENT_ROOMS = _w("""attic, cellar, sauna, barn, stable, greenhouse, wine cellar, library, ballroom, gym, pool house, guest house, tree house, music room, game room, darkroom, laboratory, bunker, chapel, dungeon, observatory, conservatory, workshop, boathouse, penthouse, crawl space, panic room, pantry, mudroom, sunroom, nursery, study, den, shed, balcony, terrace, garage, basement, office, dining room, hallway, guest room, laundry room, patio, garden, porch, kitchen, bathroom, bedroom, cinema, playroom""")

SYLLABLES_A = _w("za, zo, ka, ki, ko, mo, mi, ma, lu, la, lo, ri, ra, ro, ve, vi, va, te, to, ta, ni, no, na, ze, xe, qui, fa, fi, fo, be, bi, bo, bra, dre, gri, plo, sta, tri, cle, glo, no, hu, ja, jo, ju, wi, wo, ya, yo, el, or, an, is, ul, al, em, ar, in")
SYLLABLES_B = _w("ra, na, ka, la, mi, to, ro, lo, vi, do, di, ta, xi, ne, li, ba, go, ma, ve, su, ni, ri, pa, ze, fu, co, lu, sa, mo, te, per, lan, dor, mar, ten, ver, sol, bel, gar, nor")
SYLLABLES_C = _w("x, n, r, s, l, m, th, ck, rd, nd, st, ra, na, la, lo, no, to, ix, on, us, a, o, ia, is, en, el, or, ar, ax, ex, io, um, y, ie, let, ton, dor, bert, wick, mund, stein, ford, by")
WHIMSY = _w("""
Glowworm, Big Bertha, Zeppelin, Rosie, Sparky, Buzz, Jarvis, Wall E, Dusty, Dustin, Firefly, Sunbeam, Moonbeam, Stardust, Nightingale, Lighthouse, Dragon, Phoenix, Gandalf, Merlin, Frodo, Bilbo, Yoda, Chewie, Bender, Marvin, Hal, Robbie, Snoopy, Garfield, Nemo, Dory, Pixel, Byte, Widget, Gizmo, Pebble, Waffle, Pancake, Muffin, Biscuit, Pickle, Noodle, Peanut, Cosmo, Comet, Rocket, Saturn, Jupiter, Mercury, Venus, Pluto, Apollo, Athena, Zeus, Thor, Odin, Loki, Freya, Titan, Atlas, Echo, Iris, Luna, Nova, Orion, Vega, Sirius, Aurora, Ember, Blaze, Inferno, Glacier, Blizzard, Breeze, Hurricane, Tornado, Cyclone, Thunder, Lightning,
Mister Clean, Captain Sweep, Sir Mops A Lot, Lady Gaga, Old Faithful, Big Blue, Little Red, The Beast, The Hulk, The Duke, The Cube, The Tower, The Monolith, Cherry, Olive, Maple, Willow, Juniper, Hazel, Ginger, Pepper, Basil, Sage, Clover, Poppy, Daisy, Lotus, Bamboo, Cactus, Cricket, Bumblebee, Ladybug, Beetle, Sparrow, Raven, Falcon, Owl, Penguin, Walrus, Badger, Otter, Beaver, Fox, Wolf, Bear, Tiger, Panther, Shaun, Norbert, Gertrude, Winston, Percy, Mildred, Agatha, Hercules, Sherlock, Watson, Napoleon, Cleopatra, Einstein, Newton, Tesla, Edison, Darwin, Mozart, Elvis, Ziggy, Ringo""")

# names that makers give, and people take over as they are
BRANDS = _w("""
Ecobee, Nest, Hue, Hue Go, Hue Play, Sonos, Sonos One, Sonos Arc, Dyson, Dyson Fan, Roborock, Roborock S7, Roomba, Roomba i7, Deebot, Eufy, Dreame, Braava, Landroid, Automower, Worx, Shelly, Shelly 1PM, Shelly Plug S, Tapo, Tapo P110, Kasa, Kasa HS110, Sonoff, Sonoff Mini,
Wiz, Wiz Bulb, Lifx, Lifx Beam, Nanoleaf, Nanoleaf Shapes, Govee, Govee Strip, Yeelight, WLED, Tradfri, Tradfri Bulb, Ledvance, Innr, Aqara, Aqara T1, Zigbee Plug, Tuya, Meross, Wemo, Lutron, Caseta, Leviton, Inovelli, Zooz, Fibaro, Qubino, Tado, Netatmo, Honeywell, Daikin, Mitsubishi AC, Sensibo, Evohome, Hive, Bosch Heater,
LG TV, LG OLED, Samsung TV, Bravia, Roku, Fire TV, Apple TV, Chromecast, Shield, Denon, Denon AVR, Yamaha, Onkyo, Marantz, Bose, Bose Soundbar, HomePod, HomePod Mini, Echo Dot, Echo Show, Nest Mini, Nest Hub, Kodi, Plex, Xbox, PS5, PlayStation, Switch Dock, Yale, Yale Lock, Nuki, August, Schlage, Danalock, Kwikset,
Somfy, Somfy RTS, Velux, Fyrtur, Kadrilj, IKEA Blind, Soma Shade, MyQ, Gogogate, Chamberlain, Philips Lamp, Ikea Lamp, Osram Strip, Elgato, Elgato Key Light, Levoit, Coway, Blueair, Vornado, Big Ass Fan, Sonnen, Zappi, Wallbox, Tesla Charger, OpenEVSE, Anova, Traeger, Meater, Ember Mug, Moccamaster, DeLonghi, Jura, Nespresso, Keurig, Instant Pot, Thermomix, Miele, Miele Washer""")

ALIKE = {  # a word that the names of several things in one room may share: domain, class, the word for many
    "lamp": ("light", "", "lamps"), "bulb": ("light", "", "bulbs"), "strip": ("light", "", "strips"), "spotlight": ("light", "", "spotlights"), "sconce": ("light", "", "sconces"), "lantern": ("light", "", "lanterns"),
    "chandelier": ("light", "", "chandeliers"), "pendant": ("light", "", "pendants"), "floodlight": ("light", "", "floodlights"), "fan": ("fan", "", "fans"), "blind": ("cover", "blind", "blinds"), "curtain": ("cover", "curtain", "curtains"),
    "shade": ("cover", "shade", "shades"), "shutter": ("cover", "shutter", "shutters"), "window": ("cover", "window", "windows"), "awning": ("cover", "awning", "awnings"), "speaker": ("media_player", "", "speakers"), "tv": ("media_player", "", "tvs"),
    "radio": ("media_player", "", "radios"), "screen": ("media_player", "", "screens"), "thermostat": ("climate", "", "thermostats"), "radiator": ("climate", "", "radiators"), "heater": ("switch", "", "heaters"), "plug": ("switch", "outlet", "plugs"),
    "outlet": ("switch", "outlet", "outlets"), "socket": ("switch", "outlet", "sockets"), "charger": ("switch", "", "chargers"), "pump": ("switch", "", "pumps"), "sprinkler": ("switch", "", "sprinklers"), "monitor": ("switch", "", "monitors"),
    "humidifier": ("switch", "", "humidifiers"), "camera": ("switch", "", "cameras"), "purifier": ("switch", "", "purifiers"), "kettle": ("switch", "", "kettles"), "freezer": ("switch", "", "freezers"), "lock": ("lock", "", "locks"), "door": ("lock", "", "doors"),
}

OTHER_WORDS = (  # people's words for the same thing
    ("tv", "telly", "television", "tele", "tv set", "telly box"), ("vacuum", "hoover", "vac"), ("ac", "aircon", "air con", "air conditioning"), ("fridge", "refrigerator"), ("washer", "washing machine"), ("dryer", "tumble dryer"),
    ("plug", "socket", "outlet"), ("stereo", "hi fi", "sound system"), ("radiator", "heater"), ("couch", "sofa", "settee"), ("mower", "lawnmower", "lawn mower"), ("drapes", "curtains"), 
    ("entrance", "entryway"), ("computer", "pc"), ("fireplace", "fire"), ("jacuzzi", "hot tub"), ("purifier", "air cleaner"), ("speaker", "loudspeaker", "sound box"), ("coffee", "espresso"),
)
