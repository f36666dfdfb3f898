/* Tokens that push services report as dead, late: after the device registered anew, ended, or after its row was deleted.
 *
 * A notification that gorush accepted is remembered with the row of its device and the version that it was posted to. A failure of its token, which
 * may be reported days later, ends the device if its row still has that version. DEVICES selects the table of devices:
 *
 *     STATUS   a row lasts: it becomes a tombstone, and only an unfounded tombstone is forgotten
 *     V01      the row is deleted with the device
 *
 * Whether a new row gets the id of a deleted one is read from the store: see status-rules.pml and v01-rules.pml.
 */
#include "status-rules.pml"
#undef ABSENT
#undef REGISTERED
#undef ENDED
#undef UNFOUNDED
#undef UNCHANGED
#undef FORGOTTEN
#undef REGISTER
#undef BELOW
#undef EQUAL
#undef SAME_MESSAGE
#undef ABOVE
#undef FLAWED
#undef SUCCESS
#undef VERSION_MISMATCH
#undef MALFORMED
#include "v01-rules.pml"

#define STATUS 0
#define V01 1
#ifndef DEVICES
#define DEVICES V01
#endif
#define REUSES (DEVICES == V01 -> v01ReusesDeviceIDs : statusReusesIDs)

#define OWNERS 3
#define VERSIONS 2
/* As many ids as rows can be inserted. */
#define IDS 8
#define NONE 255

hidden byte deadTokenEndsOnlyItsDevice;
#define GUARANTEE(name, condition) assert(name || (condition))

/* Of each owner's device: its row's id, its version, and whether it is registered. A row without registration is a tombstone. */
byte id[OWNERS] = NONE;
byte version[OWNERS];
bit isRegistered[OWNERS];
bit isUnfounded[OWNERS];
/* The highest id of a row, and the highest ever. */
byte lastID = NONE;
byte everLastID = NONE;
/* Two notifications that gorush accepted: to whom, and what is remembered. */
byte postedTo[2] = NONE;
byte postedID[2];
byte postedVersion[2];

hidden byte position, target;

inline insertRow(owner) {
    id[owner] = (REUSES -> lastID : everLastID) + 1;
    assert(id[owner] < IDS);
    lastID = id[owner];
    everLastID = (everLastID == NONE || id[owner] > everLastID -> id[owner] : everLastID)
}

inline deleteRow(owner) {
    id[owner] = NONE;
    isUnfounded[owner] = 0;
    lastID = NONE;
    position = 0;
    do
    :: position < OWNERS ->
        if
        :: id[position] != NONE && (lastID == NONE || id[position] > lastID) -> lastID = id[position]
        :: else
        fi;
        position++
    :: else -> break
    od;
    position = 0
}

/* Of version 0.1 the record keeps the version, and the row of the device goes. */
inline end(owner) {
    isRegistered[owner] = 0;
    if
    :: DEVICES == V01 -> deleteRow(owner)
    :: else
    fi
}

#define OWNER(owner) \
    :: d_step { version[owner] < VERSIONS && everLastID + 1 != IDS - 1 -> \
        version[owner]++; isRegistered[owner] = 1; isUnfounded[owner] = 0; \
        if \
        :: id[owner] == NONE -> insertRow(owner) \
        :: else \
        fi } \
    :: d_step { version[owner] < VERSIONS && isRegistered[owner] -> version[owner]++; end(owner) } \
    :: d_step { DEVICES == STATUS && id[owner] == NONE && version[owner] < VERSIONS && everLastID + 1 != IDS - 1 -> \
        version[owner]++; isUnfounded[owner] = 1; insertRow(owner) } \
    :: d_step { isUnfounded[owner] -> deleteRow(owner); version[owner] = 0 } \
    :: d_step { isRegistered[owner] && postedTo[0] == NONE -> \
        postedTo[0] = owner; postedID[0] = id[owner]; postedVersion[0] = version[owner] } \
    :: d_step { isRegistered[owner] && postedTo[0] != NONE && postedTo[1] == NONE -> \
        postedTo[1] = owner; postedID[1] = id[owner]; postedVersion[1] = version[owner] }

/* The failure of a post is reported: once, then its row says so. */
inline tokenIsDead(post) {
    position = 0;
    target = NONE;
    do
    :: position < OWNERS ->
        if
        :: id[position] == postedID[post] && isRegistered[position] && version[position] == postedVersion[post] -> target = position
        :: else
        fi;
        position++
    :: else -> break
    od;
    position = 0;
    if
    :: target != NONE ->
        GUARANTEE(deadTokenEndsOnlyItsDevice, target == postedTo[post]);
        end(target)
    :: else
    fi;
    target = 0;
    postedTo[post] = NONE;
    postedID[post] = 0;
    postedVersion[post] = 0
}

active proctype node() {
    do
    OWNER(0)
    OWNER(1)
    OWNER(2)
    :: d_step { postedTo[0] != NONE -> tokenIsDead(0) }
    :: d_step { postedTo[1] != NONE -> tokenIsDead(1) }
    od
}
