#include "CSodium.h"

#include "../OptionalLibrary.h"

OPTIONAL_LIBRARY_OPEN(csodium, CSODIUM_FUNCTIONS)
OPTIONAL_LIBRARY_NOTE("session", "Session push server: signatures and encryption", "recommended", CSODIUM_SONAME)
