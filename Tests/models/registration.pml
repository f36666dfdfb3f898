/* Status registrations: grants, versions, tombstones and dead tokens, under a relay that loses, repeats, reorders and replays messages.
 *
 * A place is an installation at one server. Its transitions are not written here: status-rules.pml has them, generated from RegistrationHandler
 * and the tables of the store (StatusModelTableTests). The model adds the behaviour of clients, relay and time:
 *
 *     client   signs a registration or unregistration of the next version, one message for each server
 *     relay    delivers any message ever signed, any number of times, in any order, as it came or with another timestamp (another mark)
 *     attacker delivers registrations whose grant is not valid, with any version
 *     node     ends registrations (dead token, lifetime), and forgets unfounded tombstones after 30 days: at any time
 *
 * Messages sealed for another server or by another key are dropped before any of this: the generator checks it.
 */
#include "status-rules.pml"

#ifndef REGISTRANTS
#define REGISTRANTS 2
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef SERVERS
#define SERVERS 2
#endif
#ifndef VERSIONS
#define VERSIONS 2
#endif
/* Whether the relay alters timestamps. */
#ifndef ALTERS
#define ALTERS 0
#endif
/* Whether a client may begin with an unregistration. */
#ifndef BEGINS_WITH_END
#define BEGINS_WITH_END 0
#endif
#ifndef IDEMPOTENT
#define IDEMPOTENT 0
#endif

#define INSTALLATIONS (REGISTRANTS * DEVICES)
#define PLACES (INSTALLATIONS * SERVERS)

/* Guarantees.md, by name: a violated assertion shows the name. All are 0, outside of the state. */
hidden byte successIsOnDisk;
hidden byte versionsOnlyIncrease;
hidden byte tombstoneOfARegisteredInstallationIsKept;
hidden byte oldRegistrationDoesNotReturn;
hidden byte onlyTheRegistrantsGrantRegisters;
hidden byte repeatedMessageGetsItsAnswerAgain;
hidden byte deadTokenEndsOnlyItsRegistration;
hidden byte latestVersionArrives;
hidden byte knownVersionsDecideNothing;
hidden byte tableHasNoGap;
#define GUARANTEE(name, condition) assert(name || (condition))

/* What each installation signed: 0 nothing, else 1 + message. */
byte intent[INSTALLATIONS * VERSIONS];
/* kind + 4 * version + 16 * mark. A mark is 0: none, 1: that of the message as signed, 2: that of an altered copy. */
byte row[PLACES];
/* The highest version answered with success, the highest version acknowledged as ended or ended by the node, and whether it was ever registered. */
byte acknowledged[PLACES];
byte ended[PLACES];
bit wasRegistered[PLACES];

#define KIND(place) (row[place] & 3)
#define VERSION(place) ((row[place] >> 2) & 3)
#define MARK(place) (row[place] >> 4)
#define ROW(kind, version, mark) ((kind) + 4 * (version) + 16 * (mark))
#define INTENT(place, version) intent[((place) / SERVERS) * VERSIONS + (version) - 1]
#define RELATION(place, version, mark) \
    (KIND(place) == ABSENT || (version) > VERSION(place) -> ABOVE : \
        ((version) < VERSION(place) -> BELOW : (MARK(place) == (mark) -> SAME_MESSAGE : EQUAL)))
#define OUTCOME(place, message, version, mark, content, known) \
    statusRules[((((KIND(place) * 2 + (message)) * 4 + RELATION(place, version, mark)) * 2 + (content)) * 2 + (known)) * 2 + IDEMPOTENT]

hidden byte outcome, latest;

inline sign(installation, version, message) {
    intent[(installation) * VERSIONS + (version) - 1] = 1 + (message)
}

/* A message reaches a server. */
inline deliver(place, message, version, mark, content) {
    outcome = OUTCOME(place, message, version, mark, content, 0);
    GUARANTEE(tableHasNoGap, outcome != 0);
    GUARANTEE(knownVersionsDecideNothing, outcome == OUTCOME(place, message, version, mark, content, 1));
    if
    :: (content) == GRANTED && RELATION(place, version, mark) == SAME_MESSAGE ->
        GUARANTEE(repeatedMessageGetsItsAnswerAgain, outcome / 10 == SUCCESS)
    :: else
    fi;
    if
    :: outcome % 10 != UNCHANGED ->
        GUARANTEE(versionsOnlyIncrease, KIND(place) == ABSENT || (version) > VERSION(place));
        GUARANTEE(onlyTheRegistrantsGrantRegisters, (content) == GRANTED);
        row[place] = ROW(outcome % 10, version, mark)
    :: else
    fi;
    if
    :: outcome / 10 == SUCCESS ->
        GUARANTEE(successIsOnDisk, VERSION(place) == (version) && (KIND(place) == REGISTERED) == ((message) == REGISTER));
        acknowledged[place] = (acknowledged[place] > (version) -> acknowledged[place] : (version));
        if
        :: (message) == UNREGISTER && wasRegistered[place] && (version) > ended[place] -> ended[place] = (version)
        :: else
        fi
    :: else
    fi;
    observe(place)
}

/* The invariants of a place. */
inline observe(place) {
    GUARANTEE(oldRegistrationDoesNotReturn, KIND(place) != REGISTERED || VERSION(place) > ended[place]);
    if
    :: KIND(place) == REGISTERED -> wasRegistered[place] = 1
    :: else
    fi;
    GUARANTEE(tombstoneOfARegisteredInstallationIsKept, !wasRegistered[place] || KIND(place) == REGISTERED || KIND(place) == ENDED);
    GUARANTEE(successIsOnDisk, KIND(place) != ABSENT && VERSION(place) >= acknowledged[place] || acknowledged[place] == 0);
    /* From here on the relay might deliver all: the latest message, in a copy that the node has not seen, has its effect, or had it already. */
    latest = (VERSIONS > 2 && INTENT(place, VERSIONS) != 0 -> VERSIONS :
        (VERSIONS > 1 && INTENT(place, 2) != 0 -> 2 : (INTENT(place, 1) != 0 -> 1 : 0)));
    if
    :: latest != 0 ->
        outcome = OUTCOME(place, INTENT(place, latest) - 1, latest, 3, GRANTED, 0);
        GUARANTEE(latestVersionArrives, (outcome / 10 == SUCCESS && outcome % 10 != UNCHANGED) || VERSION(place) == latest
            && ((KIND(place) == REGISTERED) == (INTENT(place, latest) == 1 + REGISTER) || ended[place] == latest))
    :: else
    fi
}

/* A push service reports the token dead to which a notification was posted at this version. */
inline tokenIsDead(place, version) {
    outcome = statusFailures[KIND(place) * 2 + (VERSION(place) == (version) -> 1 : 0)];
    if
    :: outcome != UNCHANGED ->
        GUARANTEE(deadTokenEndsOnlyItsRegistration, KIND(place) == REGISTERED && VERSION(place) == (version) && outcome == ENDED);
        row[place] = ROW(outcome, VERSION(place), 0);
        ended[place] = VERSION(place)
    :: else
    fi;
    observe(place)
}

/* The lifetime of a registration ends, or 30 days of a tombstone. */
inline timePasses(place, change) {
    outcome = change;
    if
    :: outcome == FORGOTTEN ->
        row[place] = 0;
        /* The limit that Guarantees.md names: nothing is known any more of an installation that was never registered here. */
        if
        :: !wasRegistered[place] -> acknowledged[place] = 0
        :: else
        fi
    :: outcome != FORGOTTEN && outcome != UNCHANGED ->
        row[place] = ROW(outcome, VERSION(place), 0);
        ended[place] = VERSION(place)
    :: else
    fi;
    observe(place)
}

#if ALTERS
#define COPIES(place, version) \
    :: d_step { INTENT(place, version) != 0 -> deliver(place, INTENT(place, version) - 1, version, 1, GRANTED) } \
    :: d_step { INTENT(place, version) != 0 -> deliver(place, INTENT(place, version) - 1, version, 2, GRANTED) }
#else
#define COPIES(place, version) \
    :: d_step { INTENT(place, version) != 0 -> deliver(place, INTENT(place, version) - 1, version, 1, GRANTED) }
#endif

#define MESSAGE(place, version) \
    COPIES(place, version) \
    :: d_step { true -> deliver(place, REGISTER, version, 3, FLAWED) } \
    :: d_step { true -> tokenIsDead(place, version) }
#if VERSIONS > 2
#define MESSAGES(place) MESSAGE(place, 1) MESSAGE(place, 2) MESSAGE(place, 3)
#else
#define MESSAGES(place) MESSAGE(place, 1) MESSAGE(place, 2)
#endif
#define PLACE(place) \
    MESSAGES(place) \
    :: d_step { true -> timePasses(place, statusLifetime[KIND(place)]) } \
    :: d_step { true -> timePasses(place, statusForgetting[KIND(place)]) }

#define NEXT(installation, version) \
    intent[(installation) * VERSIONS + (version) - 1] == 0 && ((version) == 1 || intent[(installation) * VERSIONS + (version) - 2] != 0)
#define SIGNATURE(installation, version) \
    :: d_step { NEXT(installation, version) -> sign(installation, version, REGISTER) } \
    :: d_step { NEXT(installation, version) && (BEGINS_WITH_END || (version) > 1) -> sign(installation, version, UNREGISTER) }
#if VERSIONS > 2
#define CLIENT(installation) SIGNATURE(installation, 1) SIGNATURE(installation, 2) SIGNATURE(installation, 3)
#else
#define CLIENT(installation) SIGNATURE(installation, 1) SIGNATURE(installation, 2)
#endif

#if INSTALLATIONS > 2
/* Installations are interchangeable: of the states that differ only in their order one is kept, in which they are sorted. */
#define KEY(i) \
    (((((((((intent[2 * (i)] * 3 + intent[2 * (i) + 1]) * 64 + row[2 * (i)]) * 64 + row[2 * (i) + 1]) * 3 + acknowledged[2 * (i)]) * 3 \
        + acknowledged[2 * (i) + 1]) * 3 + ended[2 * (i)]) * 3 + ended[2 * (i) + 1]) * 2 + wasRegistered[2 * (i)]) * 2 + wasRegistered[2 * (i) + 1])
#define SWAP(array, i) kept = array[i]; array[i] = array[(i) + 2]; array[(i) + 2] = kept
hidden byte place, kept;

inline sort() {
    place = 0;
    do
    :: place < INSTALLATIONS - 1 && KEY(place) > KEY(place + 1) ->
        SWAP(intent, 2 * place); SWAP(intent, 2 * place + 1);
        SWAP(row, 2 * place); SWAP(row, 2 * place + 1);
        SWAP(acknowledged, 2 * place); SWAP(acknowledged, 2 * place + 1);
        SWAP(ended, 2 * place); SWAP(ended, 2 * place + 1);
        SWAP(wasRegistered, 2 * place); SWAP(wasRegistered, 2 * place + 1);
        place = (place == 0 -> 0 : place - 1)
    :: place < INSTALLATIONS - 1 && KEY(place) <= KEY(place + 1) -> place++
    :: else -> break
    od;
    place = 0
}
#else
#define sort() skip
#endif

active proctype network() {
    do
    :: atomic {
        if
        CLIENT(0)
#if INSTALLATIONS > 1
        CLIENT(1)
#endif
#if INSTALLATIONS > 2
        CLIENT(2) CLIENT(3)
#endif
        PLACE(0)
#if PLACES > 1
        PLACE(1)
#endif
#if PLACES > 2
        PLACE(2) PLACE(3)
#endif
#if PLACES > 4
        PLACE(4) PLACE(5) PLACE(6) PLACE(7)
#endif
        fi;
        d_step { sort() }
    }
    od
}
