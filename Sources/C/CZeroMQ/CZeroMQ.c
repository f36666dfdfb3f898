#include "CZeroMQ.h"

#include "../OptionalLibrary.h"

OPTIONAL_LIBRARY_OPEN(czeromq, CZEROMQ_FUNCTIONS)
OPTIONAL_LIBRARY_NOTE("session", "demo and benchmark: servers of Session", "suggested", CZEROMQ_SONAME)
