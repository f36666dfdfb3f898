/* Generated from the code by StatusModelTableTests: run Deploy/dev/generate-tables. */
#define ABSENT 0
#define REGISTERED 1
#define ENDED 2
#define UNFOUNDED 3
#define FORGOTTEN 4
#define UNCHANGED 0
#define REGISTER 0
#define UNREGISTER 1
#define BELOW 0
#define EQUAL 1
#define SAME_MESSAGE 2
#define ABOVE 3
#define GRANTED 0
#define FLAWED 1
#define SUCCESS 1
#define VERSION_MISMATCH 2
#define MALFORMED 3
hidden byte statusRules[256] = {
    0, /* absent, register, below, granted, not known, strict */
    0, /* absent, register, below, granted, not known, idempotent */
    0, /* absent, register, below, granted, known, strict */
    0, /* absent, register, below, granted, known, idempotent */
    0, /* absent, register, below, flawed, not known, strict */
    0, /* absent, register, below, flawed, not known, idempotent */
    0, /* absent, register, below, flawed, known, strict */
    0, /* absent, register, below, flawed, known, idempotent */
    0, /* absent, register, equal, granted, not known, strict */
    0, /* absent, register, equal, granted, not known, idempotent */
    0, /* absent, register, equal, granted, known, strict */
    0, /* absent, register, equal, granted, known, idempotent */
    0, /* absent, register, equal, flawed, not known, strict */
    0, /* absent, register, equal, flawed, not known, idempotent */
    0, /* absent, register, equal, flawed, known, strict */
    0, /* absent, register, equal, flawed, known, idempotent */
    0, /* absent, register, sameMessage, granted, not known, strict */
    0, /* absent, register, sameMessage, granted, not known, idempotent */
    0, /* absent, register, sameMessage, granted, known, strict */
    0, /* absent, register, sameMessage, granted, known, idempotent */
    0, /* absent, register, sameMessage, flawed, not known, strict */
    0, /* absent, register, sameMessage, flawed, not known, idempotent */
    0, /* absent, register, sameMessage, flawed, known, strict */
    0, /* absent, register, sameMessage, flawed, known, idempotent */
    11, /* absent, register, above, granted, not known, strict */
    11, /* absent, register, above, granted, not known, idempotent */
    11, /* absent, register, above, granted, known, strict */
    11, /* absent, register, above, granted, known, idempotent */
    30, /* absent, register, above, flawed, not known, strict */
    30, /* absent, register, above, flawed, not known, idempotent */
    30, /* absent, register, above, flawed, known, strict */
    30, /* absent, register, above, flawed, known, idempotent */
    0, /* absent, unregister, below, granted, not known, strict */
    0, /* absent, unregister, below, granted, not known, idempotent */
    0, /* absent, unregister, below, granted, known, strict */
    0, /* absent, unregister, below, granted, known, idempotent */
    0, /* absent, unregister, below, flawed, not known, strict */
    0, /* absent, unregister, below, flawed, not known, idempotent */
    0, /* absent, unregister, below, flawed, known, strict */
    0, /* absent, unregister, below, flawed, known, idempotent */
    0, /* absent, unregister, equal, granted, not known, strict */
    0, /* absent, unregister, equal, granted, not known, idempotent */
    0, /* absent, unregister, equal, granted, known, strict */
    0, /* absent, unregister, equal, granted, known, idempotent */
    0, /* absent, unregister, equal, flawed, not known, strict */
    0, /* absent, unregister, equal, flawed, not known, idempotent */
    0, /* absent, unregister, equal, flawed, known, strict */
    0, /* absent, unregister, equal, flawed, known, idempotent */
    0, /* absent, unregister, sameMessage, granted, not known, strict */
    0, /* absent, unregister, sameMessage, granted, not known, idempotent */
    0, /* absent, unregister, sameMessage, granted, known, strict */
    0, /* absent, unregister, sameMessage, granted, known, idempotent */
    0, /* absent, unregister, sameMessage, flawed, not known, strict */
    0, /* absent, unregister, sameMessage, flawed, not known, idempotent */
    0, /* absent, unregister, sameMessage, flawed, known, strict */
    0, /* absent, unregister, sameMessage, flawed, known, idempotent */
    13, /* absent, unregister, above, granted, not known, strict */
    13, /* absent, unregister, above, granted, not known, idempotent */
    13, /* absent, unregister, above, granted, known, strict */
    13, /* absent, unregister, above, granted, known, idempotent */
    0, /* absent, unregister, above, flawed, not known, strict */
    0, /* absent, unregister, above, flawed, not known, idempotent */
    0, /* absent, unregister, above, flawed, known, strict */
    0, /* absent, unregister, above, flawed, known, idempotent */
    20, /* registered, register, below, granted, not known, strict */
    20, /* registered, register, below, granted, not known, idempotent */
    20, /* registered, register, below, granted, known, strict */
    20, /* registered, register, below, granted, known, idempotent */
    20, /* registered, register, below, flawed, not known, strict */
    20, /* registered, register, below, flawed, not known, idempotent */
    20, /* registered, register, below, flawed, known, strict */
    20, /* registered, register, below, flawed, known, idempotent */
    20, /* registered, register, equal, granted, not known, strict */
    10, /* registered, register, equal, granted, not known, idempotent */
    20, /* registered, register, equal, granted, known, strict */
    10, /* registered, register, equal, granted, known, idempotent */
    20, /* registered, register, equal, flawed, not known, strict */
    20, /* registered, register, equal, flawed, not known, idempotent */
    20, /* registered, register, equal, flawed, known, strict */
    20, /* registered, register, equal, flawed, known, idempotent */
    10, /* registered, register, sameMessage, granted, not known, strict */
    10, /* registered, register, sameMessage, granted, not known, idempotent */
    10, /* registered, register, sameMessage, granted, known, strict */
    10, /* registered, register, sameMessage, granted, known, idempotent */
    0, /* registered, register, sameMessage, flawed, not known, strict */
    0, /* registered, register, sameMessage, flawed, not known, idempotent */
    0, /* registered, register, sameMessage, flawed, known, strict */
    0, /* registered, register, sameMessage, flawed, known, idempotent */
    11, /* registered, register, above, granted, not known, strict */
    11, /* registered, register, above, granted, not known, idempotent */
    11, /* registered, register, above, granted, known, strict */
    11, /* registered, register, above, granted, known, idempotent */
    30, /* registered, register, above, flawed, not known, strict */
    30, /* registered, register, above, flawed, not known, idempotent */
    30, /* registered, register, above, flawed, known, strict */
    30, /* registered, register, above, flawed, known, idempotent */
    20, /* registered, unregister, below, granted, not known, strict */
    20, /* registered, unregister, below, granted, not known, idempotent */
    20, /* registered, unregister, below, granted, known, strict */
    20, /* registered, unregister, below, granted, known, idempotent */
    0, /* registered, unregister, below, flawed, not known, strict */
    0, /* registered, unregister, below, flawed, not known, idempotent */
    0, /* registered, unregister, below, flawed, known, strict */
    0, /* registered, unregister, below, flawed, known, idempotent */
    20, /* registered, unregister, equal, granted, not known, strict */
    20, /* registered, unregister, equal, granted, not known, idempotent */
    20, /* registered, unregister, equal, granted, known, strict */
    20, /* registered, unregister, equal, granted, known, idempotent */
    0, /* registered, unregister, equal, flawed, not known, strict */
    0, /* registered, unregister, equal, flawed, not known, idempotent */
    0, /* registered, unregister, equal, flawed, known, strict */
    0, /* registered, unregister, equal, flawed, known, idempotent */
    0, /* registered, unregister, sameMessage, granted, not known, strict */
    0, /* registered, unregister, sameMessage, granted, not known, idempotent */
    0, /* registered, unregister, sameMessage, granted, known, strict */
    0, /* registered, unregister, sameMessage, granted, known, idempotent */
    0, /* registered, unregister, sameMessage, flawed, not known, strict */
    0, /* registered, unregister, sameMessage, flawed, not known, idempotent */
    0, /* registered, unregister, sameMessage, flawed, known, strict */
    0, /* registered, unregister, sameMessage, flawed, known, idempotent */
    12, /* registered, unregister, above, granted, not known, strict */
    12, /* registered, unregister, above, granted, not known, idempotent */
    12, /* registered, unregister, above, granted, known, strict */
    12, /* registered, unregister, above, granted, known, idempotent */
    0, /* registered, unregister, above, flawed, not known, strict */
    0, /* registered, unregister, above, flawed, not known, idempotent */
    0, /* registered, unregister, above, flawed, known, strict */
    0, /* registered, unregister, above, flawed, known, idempotent */
    20, /* ended, register, below, granted, not known, strict */
    20, /* ended, register, below, granted, not known, idempotent */
    20, /* ended, register, below, granted, known, strict */
    20, /* ended, register, below, granted, known, idempotent */
    20, /* ended, register, below, flawed, not known, strict */
    20, /* ended, register, below, flawed, not known, idempotent */
    20, /* ended, register, below, flawed, known, strict */
    20, /* ended, register, below, flawed, known, idempotent */
    20, /* ended, register, equal, granted, not known, strict */
    20, /* ended, register, equal, granted, not known, idempotent */
    20, /* ended, register, equal, granted, known, strict */
    20, /* ended, register, equal, granted, known, idempotent */
    20, /* ended, register, equal, flawed, not known, strict */
    20, /* ended, register, equal, flawed, not known, idempotent */
    20, /* ended, register, equal, flawed, known, strict */
    20, /* ended, register, equal, flawed, known, idempotent */
    0, /* ended, register, sameMessage, granted, not known, strict */
    0, /* ended, register, sameMessage, granted, not known, idempotent */
    0, /* ended, register, sameMessage, granted, known, strict */
    0, /* ended, register, sameMessage, granted, known, idempotent */
    0, /* ended, register, sameMessage, flawed, not known, strict */
    0, /* ended, register, sameMessage, flawed, not known, idempotent */
    0, /* ended, register, sameMessage, flawed, known, strict */
    0, /* ended, register, sameMessage, flawed, known, idempotent */
    11, /* ended, register, above, granted, not known, strict */
    11, /* ended, register, above, granted, not known, idempotent */
    11, /* ended, register, above, granted, known, strict */
    11, /* ended, register, above, granted, known, idempotent */
    30, /* ended, register, above, flawed, not known, strict */
    30, /* ended, register, above, flawed, not known, idempotent */
    30, /* ended, register, above, flawed, known, strict */
    30, /* ended, register, above, flawed, known, idempotent */
    20, /* ended, unregister, below, granted, not known, strict */
    20, /* ended, unregister, below, granted, not known, idempotent */
    20, /* ended, unregister, below, granted, known, strict */
    20, /* ended, unregister, below, granted, known, idempotent */
    0, /* ended, unregister, below, flawed, not known, strict */
    0, /* ended, unregister, below, flawed, not known, idempotent */
    0, /* ended, unregister, below, flawed, known, strict */
    0, /* ended, unregister, below, flawed, known, idempotent */
    20, /* ended, unregister, equal, granted, not known, strict */
    20, /* ended, unregister, equal, granted, not known, idempotent */
    20, /* ended, unregister, equal, granted, known, strict */
    20, /* ended, unregister, equal, granted, known, idempotent */
    0, /* ended, unregister, equal, flawed, not known, strict */
    0, /* ended, unregister, equal, flawed, not known, idempotent */
    0, /* ended, unregister, equal, flawed, known, strict */
    0, /* ended, unregister, equal, flawed, known, idempotent */
    10, /* ended, unregister, sameMessage, granted, not known, strict */
    10, /* ended, unregister, sameMessage, granted, not known, idempotent */
    10, /* ended, unregister, sameMessage, granted, known, strict */
    10, /* ended, unregister, sameMessage, granted, known, idempotent */
    0, /* ended, unregister, sameMessage, flawed, not known, strict */
    0, /* ended, unregister, sameMessage, flawed, not known, idempotent */
    0, /* ended, unregister, sameMessage, flawed, known, strict */
    0, /* ended, unregister, sameMessage, flawed, known, idempotent */
    12, /* ended, unregister, above, granted, not known, strict */
    12, /* ended, unregister, above, granted, not known, idempotent */
    12, /* ended, unregister, above, granted, known, strict */
    12, /* ended, unregister, above, granted, known, idempotent */
    0, /* ended, unregister, above, flawed, not known, strict */
    0, /* ended, unregister, above, flawed, not known, idempotent */
    0, /* ended, unregister, above, flawed, known, strict */
    0, /* ended, unregister, above, flawed, known, idempotent */
    20, /* unfounded, register, below, granted, not known, strict */
    20, /* unfounded, register, below, granted, not known, idempotent */
    20, /* unfounded, register, below, granted, known, strict */
    20, /* unfounded, register, below, granted, known, idempotent */
    20, /* unfounded, register, below, flawed, not known, strict */
    20, /* unfounded, register, below, flawed, not known, idempotent */
    20, /* unfounded, register, below, flawed, known, strict */
    20, /* unfounded, register, below, flawed, known, idempotent */
    20, /* unfounded, register, equal, granted, not known, strict */
    20, /* unfounded, register, equal, granted, not known, idempotent */
    20, /* unfounded, register, equal, granted, known, strict */
    20, /* unfounded, register, equal, granted, known, idempotent */
    20, /* unfounded, register, equal, flawed, not known, strict */
    20, /* unfounded, register, equal, flawed, not known, idempotent */
    20, /* unfounded, register, equal, flawed, known, strict */
    20, /* unfounded, register, equal, flawed, known, idempotent */
    0, /* unfounded, register, sameMessage, granted, not known, strict */
    0, /* unfounded, register, sameMessage, granted, not known, idempotent */
    0, /* unfounded, register, sameMessage, granted, known, strict */
    0, /* unfounded, register, sameMessage, granted, known, idempotent */
    0, /* unfounded, register, sameMessage, flawed, not known, strict */
    0, /* unfounded, register, sameMessage, flawed, not known, idempotent */
    0, /* unfounded, register, sameMessage, flawed, known, strict */
    0, /* unfounded, register, sameMessage, flawed, known, idempotent */
    11, /* unfounded, register, above, granted, not known, strict */
    11, /* unfounded, register, above, granted, not known, idempotent */
    11, /* unfounded, register, above, granted, known, strict */
    11, /* unfounded, register, above, granted, known, idempotent */
    30, /* unfounded, register, above, flawed, not known, strict */
    30, /* unfounded, register, above, flawed, not known, idempotent */
    30, /* unfounded, register, above, flawed, known, strict */
    30, /* unfounded, register, above, flawed, known, idempotent */
    20, /* unfounded, unregister, below, granted, not known, strict */
    20, /* unfounded, unregister, below, granted, not known, idempotent */
    20, /* unfounded, unregister, below, granted, known, strict */
    20, /* unfounded, unregister, below, granted, known, idempotent */
    0, /* unfounded, unregister, below, flawed, not known, strict */
    0, /* unfounded, unregister, below, flawed, not known, idempotent */
    0, /* unfounded, unregister, below, flawed, known, strict */
    0, /* unfounded, unregister, below, flawed, known, idempotent */
    20, /* unfounded, unregister, equal, granted, not known, strict */
    20, /* unfounded, unregister, equal, granted, not known, idempotent */
    20, /* unfounded, unregister, equal, granted, known, strict */
    20, /* unfounded, unregister, equal, granted, known, idempotent */
    0, /* unfounded, unregister, equal, flawed, not known, strict */
    0, /* unfounded, unregister, equal, flawed, not known, idempotent */
    0, /* unfounded, unregister, equal, flawed, known, strict */
    0, /* unfounded, unregister, equal, flawed, known, idempotent */
    10, /* unfounded, unregister, sameMessage, granted, not known, strict */
    10, /* unfounded, unregister, sameMessage, granted, not known, idempotent */
    10, /* unfounded, unregister, sameMessage, granted, known, strict */
    10, /* unfounded, unregister, sameMessage, granted, known, idempotent */
    0, /* unfounded, unregister, sameMessage, flawed, not known, strict */
    0, /* unfounded, unregister, sameMessage, flawed, not known, idempotent */
    0, /* unfounded, unregister, sameMessage, flawed, known, strict */
    0, /* unfounded, unregister, sameMessage, flawed, known, idempotent */
    13, /* unfounded, unregister, above, granted, not known, strict */
    13, /* unfounded, unregister, above, granted, not known, idempotent */
    13, /* unfounded, unregister, above, granted, known, strict */
    13, /* unfounded, unregister, above, granted, known, idempotent */
    0, /* unfounded, unregister, above, flawed, not known, strict */
    0, /* unfounded, unregister, above, flawed, not known, idempotent */
    0, /* unfounded, unregister, above, flawed, known, strict */
    0  /* unfounded, unregister, above, flawed, known, idempotent */
};
hidden byte statusFailures[8] = {
    0, /* absent, posted to another version */
    0, /* absent, posted to its version */
    0, /* registered, posted to another version */
    2, /* registered, posted to its version */
    0, /* ended, posted to another version */
    0, /* ended, posted to its version */
    0, /* unfounded, posted to another version */
    0  /* unfounded, posted to its version */
};
hidden byte statusLifetime[4] = {
    0, /* absent */
    2, /* registered */
    0, /* ended */
    0  /* unfounded */
};
hidden byte statusForgetting[4] = {
    0, /* absent */
    0, /* registered */
    0, /* ended */
    4  /* unfounded */
};
#define statusReusesIDs 1
