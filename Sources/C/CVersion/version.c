#include "CVersion.h"

#define TEXT(value) #value
#define TEXT_OF(macro) TEXT(macro)

// Only C can be told a value by the package's manifest.
const char *waku_push_commit(void) { return TEXT_OF(WAKU_PUSH_COMMIT); }
