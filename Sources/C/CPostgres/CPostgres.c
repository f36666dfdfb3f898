#include "CPostgres.h"

#include "../OptionalLibrary.h"

OPTIONAL_LIBRARY_OPEN(cpostgres, CPOSTGRES_FUNCTIONS)
OPTIONAL_LIBRARY_NOTE("postgresql", "Store in a PostgreSQL database", "suggested", CPOSTGRES_SONAME)
