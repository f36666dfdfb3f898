/* Generated from the code by V01ModelTableTests: run Deploy/dev/generate-tables. */
#define ABSENT 0
#define REGISTERED 1
#define ENDED 2
#define UNFOUNDED 3
#define FORGOTTEN 4
#define UNCHANGED 0
#define REGISTER 0
#define END 1
#define BELOW 0
#define EQUAL 1
#define SAME_MESSAGE 2
#define ABOVE 3
#define FREE 0
#define OWN 1
#define TAKEN 2
#define SOUND 0
#define FLAWED 1
#define SUCCESS 1
#define VERSION_MISMATCH 2
#define MALFORMED 3
hidden byte v01Rules[192] = {
    0, /* absent, register, below, free, sound */
    0, /* absent, register, below, free, flawed */
    0, /* absent, register, below, own, sound */
    0, /* absent, register, below, own, flawed */
    0, /* absent, register, below, taken, sound */
    0, /* absent, register, below, taken, flawed */
    0, /* absent, register, equal, free, sound */
    0, /* absent, register, equal, free, flawed */
    0, /* absent, register, equal, own, sound */
    0, /* absent, register, equal, own, flawed */
    0, /* absent, register, equal, taken, sound */
    0, /* absent, register, equal, taken, flawed */
    0, /* absent, register, sameMessage, free, sound */
    0, /* absent, register, sameMessage, free, flawed */
    0, /* absent, register, sameMessage, own, sound */
    0, /* absent, register, sameMessage, own, flawed */
    0, /* absent, register, sameMessage, taken, sound */
    0, /* absent, register, sameMessage, taken, flawed */
    11, /* absent, register, above, free, sound */
    30, /* absent, register, above, free, flawed */
    0, /* absent, register, above, own, sound */
    0, /* absent, register, above, own, flawed */
    30, /* absent, register, above, taken, sound */
    30, /* absent, register, above, taken, flawed */
    0, /* absent, end, below, free, sound */
    0, /* absent, end, below, free, flawed */
    0, /* absent, end, below, own, sound */
    0, /* absent, end, below, own, flawed */
    0, /* absent, end, below, taken, sound */
    0, /* absent, end, below, taken, flawed */
    0, /* absent, end, equal, free, sound */
    0, /* absent, end, equal, free, flawed */
    0, /* absent, end, equal, own, sound */
    0, /* absent, end, equal, own, flawed */
    0, /* absent, end, equal, taken, sound */
    0, /* absent, end, equal, taken, flawed */
    0, /* absent, end, sameMessage, free, sound */
    0, /* absent, end, sameMessage, free, flawed */
    0, /* absent, end, sameMessage, own, sound */
    0, /* absent, end, sameMessage, own, flawed */
    0, /* absent, end, sameMessage, taken, sound */
    0, /* absent, end, sameMessage, taken, flawed */
    13, /* absent, end, above, free, sound */
    0, /* absent, end, above, free, flawed */
    13, /* absent, end, above, own, sound */
    0, /* absent, end, above, own, flawed */
    13, /* absent, end, above, taken, sound */
    0, /* absent, end, above, taken, flawed */
    20, /* registered, register, below, free, sound */
    20, /* registered, register, below, free, flawed */
    20, /* registered, register, below, own, sound */
    20, /* registered, register, below, own, flawed */
    20, /* registered, register, below, taken, sound */
    20, /* registered, register, below, taken, flawed */
    20, /* registered, register, equal, free, sound */
    20, /* registered, register, equal, free, flawed */
    20, /* registered, register, equal, own, sound */
    20, /* registered, register, equal, own, flawed */
    20, /* registered, register, equal, taken, sound */
    20, /* registered, register, equal, taken, flawed */
    0, /* registered, register, sameMessage, free, sound */
    0, /* registered, register, sameMessage, free, flawed */
    10, /* registered, register, sameMessage, own, sound */
    0, /* registered, register, sameMessage, own, flawed */
    0, /* registered, register, sameMessage, taken, sound */
    0, /* registered, register, sameMessage, taken, flawed */
    11, /* registered, register, above, free, sound */
    30, /* registered, register, above, free, flawed */
    11, /* registered, register, above, own, sound */
    30, /* registered, register, above, own, flawed */
    30, /* registered, register, above, taken, sound */
    30, /* registered, register, above, taken, flawed */
    20, /* registered, end, below, free, sound */
    0, /* registered, end, below, free, flawed */
    20, /* registered, end, below, own, sound */
    0, /* registered, end, below, own, flawed */
    20, /* registered, end, below, taken, sound */
    0, /* registered, end, below, taken, flawed */
    20, /* registered, end, equal, free, sound */
    0, /* registered, end, equal, free, flawed */
    20, /* registered, end, equal, own, sound */
    0, /* registered, end, equal, own, flawed */
    20, /* registered, end, equal, taken, sound */
    0, /* registered, end, equal, taken, flawed */
    0, /* registered, end, sameMessage, free, sound */
    0, /* registered, end, sameMessage, free, flawed */
    0, /* registered, end, sameMessage, own, sound */
    0, /* registered, end, sameMessage, own, flawed */
    0, /* registered, end, sameMessage, taken, sound */
    0, /* registered, end, sameMessage, taken, flawed */
    12, /* registered, end, above, free, sound */
    0, /* registered, end, above, free, flawed */
    12, /* registered, end, above, own, sound */
    0, /* registered, end, above, own, flawed */
    12, /* registered, end, above, taken, sound */
    0, /* registered, end, above, taken, flawed */
    20, /* ended, register, below, free, sound */
    20, /* ended, register, below, free, flawed */
    0, /* ended, register, below, own, sound */
    0, /* ended, register, below, own, flawed */
    20, /* ended, register, below, taken, sound */
    20, /* ended, register, below, taken, flawed */
    20, /* ended, register, equal, free, sound */
    20, /* ended, register, equal, free, flawed */
    0, /* ended, register, equal, own, sound */
    0, /* ended, register, equal, own, flawed */
    20, /* ended, register, equal, taken, sound */
    20, /* ended, register, equal, taken, flawed */
    0, /* ended, register, sameMessage, free, sound */
    0, /* ended, register, sameMessage, free, flawed */
    0, /* ended, register, sameMessage, own, sound */
    0, /* ended, register, sameMessage, own, flawed */
    0, /* ended, register, sameMessage, taken, sound */
    0, /* ended, register, sameMessage, taken, flawed */
    11, /* ended, register, above, free, sound */
    30, /* ended, register, above, free, flawed */
    0, /* ended, register, above, own, sound */
    0, /* ended, register, above, own, flawed */
    30, /* ended, register, above, taken, sound */
    30, /* ended, register, above, taken, flawed */
    20, /* ended, end, below, free, sound */
    0, /* ended, end, below, free, flawed */
    20, /* ended, end, below, own, sound */
    0, /* ended, end, below, own, flawed */
    20, /* ended, end, below, taken, sound */
    0, /* ended, end, below, taken, flawed */
    10, /* ended, end, equal, free, sound */
    0, /* ended, end, equal, free, flawed */
    10, /* ended, end, equal, own, sound */
    0, /* ended, end, equal, own, flawed */
    10, /* ended, end, equal, taken, sound */
    0, /* ended, end, equal, taken, flawed */
    10, /* ended, end, sameMessage, free, sound */
    0, /* ended, end, sameMessage, free, flawed */
    10, /* ended, end, sameMessage, own, sound */
    0, /* ended, end, sameMessage, own, flawed */
    10, /* ended, end, sameMessage, taken, sound */
    0, /* ended, end, sameMessage, taken, flawed */
    12, /* ended, end, above, free, sound */
    0, /* ended, end, above, free, flawed */
    12, /* ended, end, above, own, sound */
    0, /* ended, end, above, own, flawed */
    12, /* ended, end, above, taken, sound */
    0, /* ended, end, above, taken, flawed */
    20, /* unfounded, register, below, free, sound */
    20, /* unfounded, register, below, free, flawed */
    0, /* unfounded, register, below, own, sound */
    0, /* unfounded, register, below, own, flawed */
    20, /* unfounded, register, below, taken, sound */
    20, /* unfounded, register, below, taken, flawed */
    20, /* unfounded, register, equal, free, sound */
    20, /* unfounded, register, equal, free, flawed */
    0, /* unfounded, register, equal, own, sound */
    0, /* unfounded, register, equal, own, flawed */
    20, /* unfounded, register, equal, taken, sound */
    20, /* unfounded, register, equal, taken, flawed */
    0, /* unfounded, register, sameMessage, free, sound */
    0, /* unfounded, register, sameMessage, free, flawed */
    0, /* unfounded, register, sameMessage, own, sound */
    0, /* unfounded, register, sameMessage, own, flawed */
    0, /* unfounded, register, sameMessage, taken, sound */
    0, /* unfounded, register, sameMessage, taken, flawed */
    11, /* unfounded, register, above, free, sound */
    30, /* unfounded, register, above, free, flawed */
    0, /* unfounded, register, above, own, sound */
    0, /* unfounded, register, above, own, flawed */
    30, /* unfounded, register, above, taken, sound */
    30, /* unfounded, register, above, taken, flawed */
    20, /* unfounded, end, below, free, sound */
    0, /* unfounded, end, below, free, flawed */
    20, /* unfounded, end, below, own, sound */
    0, /* unfounded, end, below, own, flawed */
    20, /* unfounded, end, below, taken, sound */
    0, /* unfounded, end, below, taken, flawed */
    10, /* unfounded, end, equal, free, sound */
    0, /* unfounded, end, equal, free, flawed */
    10, /* unfounded, end, equal, own, sound */
    0, /* unfounded, end, equal, own, flawed */
    10, /* unfounded, end, equal, taken, sound */
    0, /* unfounded, end, equal, taken, flawed */
    10, /* unfounded, end, sameMessage, free, sound */
    0, /* unfounded, end, sameMessage, free, flawed */
    10, /* unfounded, end, sameMessage, own, sound */
    0, /* unfounded, end, sameMessage, own, flawed */
    10, /* unfounded, end, sameMessage, taken, sound */
    0, /* unfounded, end, sameMessage, taken, flawed */
    13, /* unfounded, end, above, free, sound */
    0, /* unfounded, end, above, free, flawed */
    13, /* unfounded, end, above, own, sound */
    0, /* unfounded, end, above, own, flawed */
    13, /* unfounded, end, above, taken, sound */
    0  /* unfounded, end, above, taken, flawed */
};
hidden byte v01Failures[16] = {
    0, /* absent, posted to another version, one device */
    0, /* absent, posted to another version, two devices */
    0, /* absent, posted to its version, one device */
    0, /* absent, posted to its version, two devices */
    0, /* registered, posted to another version, one device */
    0, /* registered, posted to another version, two devices */
    2, /* registered, posted to its version, one device */
    1, /* registered, posted to its version, two devices */
    0, /* ended, posted to another version, one device */
    0, /* ended, posted to another version, two devices */
    0, /* ended, posted to its version, one device */
    0, /* ended, posted to its version, two devices */
    0, /* unfounded, posted to another version, one device */
    0, /* unfounded, posted to another version, two devices */
    0, /* unfounded, posted to its version, one device */
    0  /* unfounded, posted to its version, two devices */
};
hidden byte v01Lifetime[4] = {
    0, /* absent */
    2, /* registered */
    0, /* ended */
    0  /* unfounded */
};
hidden byte v01Forgetting[4] = {
    0, /* absent */
    0, /* registered */
    0, /* ended */
    4  /* unfounded */
};
#define v01ReusesDeviceIDs 0
