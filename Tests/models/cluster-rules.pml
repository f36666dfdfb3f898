/* Generated from the code by ClusterModelTableTests: run Deploy/dev/generate-tables. */
#define NOT_OWNED 0
#define POSTING 1
#define STOPPING 2
#define RELEASING 3
#define RELEASING_SETTLED 4
#define RENEW 0
#define TAKE 1
#define RELEASE 2
#define RELEASE_SETTLED 3
#define HELD_BY_NOBODY 0
#define HELD_BY_MEMBER 1
#define HELD_BY_ENDED 2
#define HELD_BY_ME 3
#define ROW_OF_OTHERS 0
#define ROW_AS_KNOWN 1
#define ROW_OF_NEW_EPOCH 2
#define UNMARKED 0
#define MARKED_BY_ME 1
#define MARKED_BEFORE 2
#define NOT_OWNER 0
#define MARK_AND_POST 1
#define MARK_AND_REPEAT 2
#define IN_PROGRESS 3
#define FORGOTTEN 0
#define WAITING 1
#define HANDLING 2
#define ANSWERING 3
#define WATCHING 4
#define FAILED 5
#define UNRESOLVED 6
#define FINISHED 7
#define COMMITTED 0
#define WITHOUT_EFFECT 1
#define CLAIMED_ELSEWHERE 2
#define NOT_COMMITTED 3
#define UNKNOWN 4
hidden byte partitionTarget[32] = {
    3, /* owner 0, nodes  */
    0, /* owner 0, nodes 0 */
    1, /* owner 0, nodes 1 */
    0, /* owner 0, nodes 0 1 */
    2, /* owner 0, nodes 2 */
    0, /* owner 0, nodes 0 2 */
    1, /* owner 0, nodes 1 2 */
    0, /* owner 0, nodes 0 1 2 */
    3, /* owner 1, nodes  */
    0, /* owner 1, nodes 0 */
    1, /* owner 1, nodes 1 */
    1, /* owner 1, nodes 0 1 */
    2, /* owner 1, nodes 2 */
    0, /* owner 1, nodes 0 2 */
    1, /* owner 1, nodes 1 2 */
    1, /* owner 1, nodes 0 1 2 */
    3, /* owner 2, nodes  */
    0, /* owner 2, nodes 0 */
    1, /* owner 2, nodes 1 */
    0, /* owner 2, nodes 0 1 */
    2, /* owner 2, nodes 2 */
    2, /* owner 2, nodes 0 2 */
    2, /* owner 2, nodes 1 2 */
    2, /* owner 2, nodes 0 1 2 */
    3, /* owner none, nodes  */
    0, /* owner none, nodes 0 */
    1, /* owner none, nodes 1 */
    0, /* owner none, nodes 0 1 */
    2, /* owner none, nodes 2 */
    0, /* owner none, nodes 0 2 */
    1, /* owner none, nodes 1 2 */
    0  /* owner none, nodes 0 1 2 */
};
hidden byte takeRules[8] = {
    0, /* held by no owner, target another */
    1, /* held by no owner, target itself */
    0, /* held by a member, target another */
    0, /* held by a member, target itself */
    0, /* held by an ended node, target another */
    1, /* held by an ended node, target itself */
    0, /* held by itself, target another */
    0  /* held by itself, target itself */
};
hidden byte releaseRules[20] = {
    0, /* notOwned, not settled, before the timeout */
    0, /* notOwned, not settled, after the timeout */
    0, /* notOwned, settled, before the timeout */
    0, /* notOwned, settled, after the timeout */
    0, /* posting, not settled, before the timeout */
    0, /* posting, not settled, after the timeout */
    0, /* posting, settled, before the timeout */
    0, /* posting, settled, after the timeout */
    0, /* stopping, not settled, before the timeout */
    2, /* stopping, not settled, after the timeout */
    3, /* stopping, settled, before the timeout */
    3, /* stopping, settled, after the timeout */
    2, /* releasing, not settled, before the timeout */
    2, /* releasing, not settled, after the timeout */
    2, /* releasing, settled, before the timeout */
    2, /* releasing, settled, after the timeout */
    3, /* releasingSettled, not settled, before the timeout */
    3, /* releasingSettled, not settled, after the timeout */
    3, /* releasingSettled, settled, before the timeout */
    3  /* releasingSettled, settled, after the timeout */
};
hidden byte ownershipRules[30] = {
    0, /* notOwned, the row has another owner, target another */
    0, /* notOwned, the row has another owner, target itself */
    0, /* notOwned, the row has the known epoch, target another */
    0, /* notOwned, the row has the known epoch, target itself */
    2, /* notOwned, the row has a new epoch, target another */
    1, /* notOwned, the row has a new epoch, target itself */
    0, /* posting, the row has another owner, target another */
    0, /* posting, the row has another owner, target itself */
    2, /* posting, the row has the known epoch, target another */
    1, /* posting, the row has the known epoch, target itself */
    2, /* posting, the row has a new epoch, target another */
    1, /* posting, the row has a new epoch, target itself */
    0, /* stopping, the row has another owner, target another */
    0, /* stopping, the row has another owner, target itself */
    2, /* stopping, the row has the known epoch, target another */
    1, /* stopping, the row has the known epoch, target itself */
    2, /* stopping, the row has a new epoch, target another */
    1, /* stopping, the row has a new epoch, target itself */
    0, /* releasing, the row has another owner, target another */
    0, /* releasing, the row has another owner, target itself */
    3, /* releasing, the row has the known epoch, target another */
    3, /* releasing, the row has the known epoch, target itself */
    2, /* releasing, the row has a new epoch, target another */
    1, /* releasing, the row has a new epoch, target itself */
    0, /* releasingSettled, the row has another owner, target another */
    0, /* releasingSettled, the row has another owner, target itself */
    4, /* releasingSettled, the row has the known epoch, target another */
    4, /* releasingSettled, the row has the known epoch, target itself */
    2, /* releasingSettled, the row has a new epoch, target another */
    1  /* releasingSettled, the row has a new epoch, target itself */
};
hidden byte verdictRules[30] = {
    0, /* unmarked, notOwned, lease over */
    0, /* unmarked, notOwned, lease valid */
    0, /* unmarked, posting, lease over */
    1, /* unmarked, posting, lease valid */
    0, /* unmarked, stopping, lease over */
    0, /* unmarked, stopping, lease valid */
    0, /* unmarked, releasing, lease over */
    0, /* unmarked, releasing, lease valid */
    0, /* unmarked, releasingSettled, lease over */
    0, /* unmarked, releasingSettled, lease valid */
    0, /* marked by this ownership, notOwned, lease over */
    0, /* marked by this ownership, notOwned, lease valid */
    0, /* marked by this ownership, posting, lease over */
    3, /* marked by this ownership, posting, lease valid */
    0, /* marked by this ownership, stopping, lease over */
    0, /* marked by this ownership, stopping, lease valid */
    0, /* marked by this ownership, releasing, lease over */
    0, /* marked by this ownership, releasing, lease valid */
    0, /* marked by this ownership, releasingSettled, lease over */
    0, /* marked by this ownership, releasingSettled, lease valid */
    0, /* marked before, notOwned, lease over */
    0, /* marked before, notOwned, lease valid */
    0, /* marked before, posting, lease over */
    2, /* marked before, posting, lease valid */
    0, /* marked before, stopping, lease over */
    0, /* marked before, stopping, lease valid */
    0, /* marked before, releasing, lease over */
    0, /* marked before, releasing, lease valid */
    0, /* marked before, releasingSettled, lease over */
    0  /* marked before, releasingSettled, lease valid */
};
hidden byte postRules[20] = {
    0, /* notOwned, marked by an earlier epoch, lease over */
    0, /* notOwned, marked by an earlier epoch, lease valid */
    0, /* notOwned, marked by this epoch, lease over */
    0, /* notOwned, marked by this epoch, lease valid */
    0, /* posting, marked by an earlier epoch, lease over */
    0, /* posting, marked by an earlier epoch, lease valid */
    0, /* posting, marked by this epoch, lease over */
    1, /* posting, marked by this epoch, lease valid */
    0, /* stopping, marked by an earlier epoch, lease over */
    0, /* stopping, marked by an earlier epoch, lease valid */
    0, /* stopping, marked by this epoch, lease over */
    0, /* stopping, marked by this epoch, lease valid */
    0, /* releasing, marked by an earlier epoch, lease over */
    0, /* releasing, marked by an earlier epoch, lease valid */
    0, /* releasing, marked by this epoch, lease over */
    0, /* releasing, marked by this epoch, lease valid */
    0, /* releasingSettled, marked by an earlier epoch, lease over */
    0, /* releasingSettled, marked by an earlier epoch, lease valid */
    0, /* releasingSettled, marked by this epoch, lease over */
    0  /* releasingSettled, marked by this epoch, lease valid */
};
hidden byte handledRules[10] = {
    3, /* committed, not answered */
    7, /* committed, answered with an error */
    7, /* without effect, not answered */
    7, /* without effect, answered with an error */
    4, /* claimed elsewhere, not answered */
    0, /* claimed elsewhere, answered with an error */
    5, /* failed, not answered */
    0, /* failed, answered with an error */
    6, /* unknown, not answered */
    6  /* unknown, answered with an error */
};
hidden byte lookUpRules[12] = {
    2, /* waiting, not claimed, the answer is not due */
    2, /* waiting, not claimed, the answer is due */
    4, /* waiting, claimed, the answer is not due */
    3, /* waiting, claimed, the answer is due */
    2, /* watching, not claimed, the answer is due */
    2, /* watching, not claimed, the answer is due */
    3, /* watching, claimed, the answer is due */
    3, /* watching, claimed, the answer is due */
    2, /* failed, not claimed, the answer is not due */
    2, /* failed, not claimed, the answer is due */
    4, /* failed, claimed, the answer is not due */
    3  /* failed, claimed, the answer is due */
};
