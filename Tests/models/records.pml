/* Records of version 0.1: access tokens that are given up and taken over, versions, tombstones and dead tokens, under the relay of registration.pml.
 * A token that was given up is its account's for a time that may end at any moment: with one server; with two it ends at once, for fewer states.
 *
 * Two accounts with two devices each share a pool of access tokens at two independent servers. v01-rules.pml has the transitions of an account's
 * row, generated from V01RegisterHandler and the tables of the store (V01ModelTableTests), which also checks that a stored record's token selects
 * it, that a token which the change replaced selects nothing, and that the devices are those of the record.
 */
#include "v01-rules.pml"

#ifndef ACCOUNTS
#define ACCOUNTS 2
#endif
#ifndef SERVERS
#define SERVERS 2
#endif
#define VERSIONS 2
#define PLACES (ACCOUNTS * SERVERS)

/* Guarantees.md and Protocol.md, by name. */
hidden byte successIsOnDisk;
hidden byte versionsOnlyIncrease;
hidden byte tombstoneOfARegisteredAccountIsKept;
hidden byte oldRecordDoesNotReturn;
hidden byte onlySignedRecordsAreStored;
hidden byte repeatedMessageGetsItsAnswerAgain;
hidden byte aTokenSelectsOneRecord;
hidden byte aTokenInUseIsNotTaken;
hidden byte aTokenGivenUpIsNotTaken;
hidden byte aTokenGivenUpCanBeTakenOver;
hidden byte deadTokenEndsOnlyItsDevice;
hidden byte tableHasNoGap;
#define GUARANTEE(name, condition) assert(name || (condition))

/* What each account signed, by version: 0 nothing, 1 to 4 a record (the token is 1 or 2, the devices are both or the first), 5 the end. */
byte records[ACCOUNTS * VERSIONS];
#define TOKEN_OF(record) (1 + ((record) - 1) / 2)
#define DEVICES_OF(record) ((record) % 2 == 1 -> 3 : 1)
#define END_RECORD 5
/* kind + 4 * version + 16 * (whether it has a mark) + 32 * devices + 128 * (token - 1) */
byte row[PLACES];
byte acknowledged[PLACES];
byte ended[PLACES];
bool wasRegistered[PLACES];
#if SERVERS == 1
/* Bits of the tokens that the account gave up, and that are kept for it. */
byte retired[PLACES];
#define HAS_RETIRED(place, token) (retired[place] & (token))
#define RETIRE(place) \
    if \
    :: KIND(place) == REGISTERED -> \
        retired[place] = retired[place] | TOKEN(place); \
        retired[OTHER(place)] = retired[OTHER(place)] & (3 - TOKEN(place)) \
    :: else \
    fi
#else
#define HAS_RETIRED(place, token) 0
#define RETIRE(place) skip
#endif

#define KIND_OF(value) ((value) & 3)
#define KIND(place) KIND_OF(row[place])
#define VERSION(place) ((row[place] >> 2) & 3)
#define HAS_MARK(place) ((row[place] >> 4) & 1)
#define HAS_DEVICES(place) ((row[place] >> 5) & 3)
#define TOKEN(place) (1 + (row[place] >> 7))
#define ROW(kind, version, mark, devices, token) ((kind) + 4 * (version) + 16 * (mark) + 32 * (devices) + 128 * ((token) - 1))
#define SIGNED(place, version) records[((place) / SERVERS) * VERSIONS + (version) - 1]
/* The same server's row of the other account. */
#define OTHER(place) ((place) ^ SERVERS)
#define RELATION(place, version, isCopy) \
    (KIND(place) == ABSENT || (version) > VERSION(place) -> ABOVE : \
        ((version) < VERSION(place) -> BELOW : (HAS_MARK(place) && (isCopy) -> SAME_MESSAGE : EQUAL)))
#define HOLDER(place, token) \
    (KIND(place) == REGISTERED && TOKEN(place) == (token) -> OWN : \
        (KIND(OTHER(place)) == REGISTERED && TOKEN(OTHER(place)) == (token) -> TAKEN : \
            (HAS_RETIRED(place, token) -> RETIRED_BY_ITSELF : (HAS_RETIRED(OTHER(place), token) -> RETIRED_BY_OTHER : FREE))))
#define OUTCOME(place, message, version, isCopy, token, content) \
    v01Rules[(((KIND(place) * 2 + (message)) * 4 + RELATION(place, version, isCopy)) * 5 + HOLDER(place, token)) * 2 + (content)]

hidden byte outcome, token, devices, message;

inline deliver(place, record, version, isCopy, content) {
    message = (record == END_RECORD -> END : REGISTER);
    token = (record == END_RECORD -> 1 : TOKEN_OF(record));
    devices = (record == END_RECORD -> 0 : DEVICES_OF(record));
    outcome = OUTCOME(place, message, version, isCopy, token, content);
    GUARANTEE(tableHasNoGap, outcome != 0);
    if
    :: (content) == SOUND && RELATION(place, version, isCopy) == SAME_MESSAGE ->
        GUARANTEE(repeatedMessageGetsItsAnswerAgain, outcome / 10 == SUCCESS)
    :: else
    fi;
    GUARANTEE(aTokenInUseIsNotTaken, HOLDER(place, token) != TAKEN || message == END || outcome % 10 == UNCHANGED);
    GUARANTEE(aTokenGivenUpIsNotTaken, HOLDER(place, token) != RETIRED_BY_OTHER || message == END || outcome % 10 == UNCHANGED);
    GUARANTEE(aTokenGivenUpCanBeTakenOver,
        HOLDER(place, token) == TAKEN || HOLDER(place, token) == RETIRED_BY_OTHER || message == END || (content) == FLAWED || RELATION(place, version, isCopy) != ABOVE || outcome == 10 * SUCCESS + REGISTERED);
    if
    :: outcome % 10 != UNCHANGED ->
        GUARANTEE(versionsOnlyIncrease, KIND(place) == ABSENT || (version) > VERSION(place));
        GUARANTEE(onlySignedRecordsAreStored, (content) == SOUND);
        RETIRE(place);
        row[place] = ROW(outcome % 10, version, 1, (outcome % 10 == REGISTERED -> devices : 0), (outcome % 10 == REGISTERED -> token : 1))
    :: else
    fi;
    if
    :: outcome / 10 == SUCCESS ->
        GUARANTEE(successIsOnDisk, VERSION(place) == (version) && (KIND(place) == REGISTERED) == (message == REGISTER)
            && (message == END || TOKEN(place) == token && HAS_DEVICES(place) == devices));
        acknowledged[place] = (acknowledged[place] > (version) -> acknowledged[place] : (version));
        if
        :: message == END && wasRegistered[place] && (version) > ended[place] -> ended[place] = (version)
        :: else
        fi
    :: else
    fi;
    observe(place)
}

inline observe(place) {
    GUARANTEE(aTokenSelectsOneRecord,
        KIND(place) != REGISTERED || KIND(OTHER(place)) != REGISTERED || TOKEN(place) != TOKEN(OTHER(place)));
    GUARANTEE(oldRecordDoesNotReturn, KIND(place) != REGISTERED || VERSION(place) > ended[place]);
    if
    :: KIND(place) == REGISTERED -> wasRegistered[place] = 1
    :: else
    fi;
    GUARANTEE(tombstoneOfARegisteredAccountIsKept, !wasRegistered[place] || KIND(place) == REGISTERED || KIND(place) == ENDED);
    GUARANTEE(successIsOnDisk, acknowledged[place] == 0 || KIND(place) != ABSENT && VERSION(place) >= acknowledged[place])
}

/* The token of a device, to which a notification was posted at this version, is reported dead. */
inline deviceIsDead(place, version, device) {
    outcome = v01Failures[(KIND(place) * 2 + (VERSION(place) == (version) -> 1 : 0)) * 2 + (HAS_DEVICES(place) == 3 -> 1 : 0)];
    if
    :: KIND(place) == REGISTERED && !(HAS_DEVICES(place) & (device)) -> outcome = UNCHANGED
    :: else
    fi;
    if
    :: outcome != UNCHANGED ->
        GUARANTEE(deadTokenEndsOnlyItsDevice, KIND(place) == REGISTERED && VERSION(place) == (version)
            && (outcome == REGISTERED) == (HAS_DEVICES(place) == 3));
        if
        :: outcome == REGISTERED ->
            row[place] = ROW(outcome, VERSION(place), 0, HAS_DEVICES(place) & (3 - (device)), TOKEN(place))
        :: else ->
            RETIRE(place);
            row[place] = ROW(outcome, VERSION(place), 0, 0, 1);
            ended[place] = VERSION(place)
        fi
    :: else
    fi;
    observe(place)
}

inline timePasses(place, change) {
    outcome = change;
    if
    :: outcome == FORGOTTEN ->
        row[place] = 0;
        if
        :: !wasRegistered[place] -> acknowledged[place] = 0
        :: else
        fi
    :: outcome != FORGOTTEN && outcome != UNCHANGED ->
        RETIRE(place);
        row[place] = ROW(outcome, VERSION(place), 0, 0, 1);
        ended[place] = VERSION(place)
    :: else
    fi;
    observe(place)
}

#define MESSAGE(place, version) \
    :: d_step { SIGNED(place, version) != 0 -> deliver(place, SIGNED(place, version), version, 1, SOUND) } \
    :: d_step { true -> deliver(place, 1, version, 0, FLAWED) } \
    :: d_step { true -> deviceIsDead(place, version, 1) } \
    :: d_step { true -> deviceIsDead(place, version, 2) }
#define PLACE(place) \
    MESSAGE(place, 1) MESSAGE(place, 2) \
    :: d_step { true -> timePasses(place, v01Lifetime[KIND(place)]) } \
    :: d_step { true -> timePasses(place, v01Forgetting[KIND(place)]) } \
    RETIREMENT_ENDS(place, 1) RETIREMENT_ENDS(place, 2)
#if SERVERS == 1
#define RETIREMENT_ENDS(place, token) \
    :: d_step { HAS_RETIRED(place, token) -> retired[place] = retired[place] & (3 - (token)) }
#else
#define RETIREMENT_ENDS(place, token)
#endif

#define SIGN(account, version, record) \
    :: d_step { records[(account) * VERSIONS + (version) - 1] == 0 && ((version) == 1 || records[(account) * VERSIONS] != 0) -> \
        records[(account) * VERSIONS + (version) - 1] = record }
#define CLIENT(account, version) \
    SIGN(account, version, 1) SIGN(account, version, 2) SIGN(account, version, 3) SIGN(account, version, 4) SIGN(account, version, END_RECORD)

active proctype network() {
    do
    CLIENT(0, 1) CLIENT(0, 2) CLIENT(1, 1) CLIENT(1, 2)
    PLACE(0)
#if SERVERS > 1
    PLACE(2)
#endif
    PLACE(1)
#if SERVERS > 1
    PLACE(3)
#endif
    od
}
