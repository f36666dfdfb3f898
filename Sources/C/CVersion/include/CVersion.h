#pragma once

/// The commit that this was built from, in hexadecimal digits; empty when the build was not told.
const char *waku_push_commit(void);
