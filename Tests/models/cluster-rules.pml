#define RENEW 0
#define TAKE 1
#define RELEASE 2
#define RELEASE_SETTLED 3
#define NOT_OWNED 0
#define POSTING 1
#define STOPPING 2
#define RELEASING 3
#define RELEASING_SETTLED 4
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
hidden byte partitionTarget[32] = {
 3, 0, 1, 0, 2, 0, 1, 0,
 3, 0, 1, 1, 2, 0, 1, 1,
 3, 0, 1, 0, 2, 2, 2, 2,
 3, 0, 1, 0, 2, 0, 1, 0 };
hidden byte takeRules[8] = { 0, 1, 0, 0, 0, 1, 0, 0 };
hidden byte releaseRules[20] = { 0,0,0,0, 0,0,0,0, 0,2,3,3, 2,2,2,2, 3,3,3,3 };
hidden byte ownershipRules[30] = {
 0,0, 2,1, 2,1,
 0,0, 2,1, 2,1,
 0,0, 2,1, 2,1,
 0,0, 3,3, 2,1,
 0,0, 4,4, 2,1 };
hidden byte verdictRules[30] = {
 0,0, 0,1, 0,0, 0,0, 0,0,
 0,0, 0,3, 0,0, 0,0, 0,0,
 0,0, 0,2, 0,0, 0,0, 0,0 };
hidden byte postRules[20] = { 0,0,0,0, 0,0,0,1, 0,0,0,0, 0,0,0,0, 0,0,0,0 };
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
hidden byte handledRules[10] = { 3,7, 7,7, 4,0, 5,0, 6,6 };
hidden byte lookUpRules[12] = { 2,2, 4,3, 2,2, 4,3, 2,2, 4,3 };
