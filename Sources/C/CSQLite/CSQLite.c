#include "CSQLite.h"

#include <sqlite3.h>

// sqlite3_config is variadic, which Swift cannot call.
void waku_sqlite_disable_memory_statistics(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
