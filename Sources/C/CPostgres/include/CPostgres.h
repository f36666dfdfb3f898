#ifndef CPOSTGRES_H
#define CPOSTGRES_H

// libpq is not needed to build waku-push: it is opened at run time. These are the types, numbers and functions in use, as <libpq-fe.h> of version 15
// declares them: DO(result, name, parameters). A test compiles them against the real header.

// Connections and results.
struct pg_conn;
struct pg_result;

typedef void (*cpq_notice_receiver)(void *context, const struct pg_result *result);

// A part of a connection string.
typedef struct cpq_conninfo_option {
    char *keyword;
    char *envvar;
    char *compiled;
    // NULL when the string does not have it.
    char *val;
    char *label;
    // "*" for a password, "D" for what is not to be shown.
    char *dispchar;
    int dispsize;
} cpq_conninfo_option;

// What NOTIFY sent.
typedef struct cpq_notify {
    // Of the channel.
    char *relname;
    // The sender's process.
    int be_pid;
    // The payload.
    char *extra;
    struct cpq_notify *next;
} cpq_notify;

#define CPOSTGRES_FUNCTIONS(DO)                                                                                                                    \
    DO(int, PQlibVersion, (void))                                                                                                                  \
    DO(cpq_conninfo_option *, PQconninfoParse, (const char *conninfo, char **error))                                                               \
    DO(cpq_conninfo_option *, PQconninfo, (struct pg_conn * connection))                                                                           \
    DO(void, PQconninfoFree, (cpq_conninfo_option * options))                                                                                      \
    DO(void, PQfreemem, (void *memory))                                                                                                            \
    DO(struct pg_conn *, PQconnectStartParams, (const char *const *keywords, const char *const *values, int expand_dbname))                        \
    DO(unsigned, PQconnectPoll, (struct pg_conn * connection))                                                                                     \
    DO(void, PQfinish, (struct pg_conn * connection))                                                                                              \
    DO(unsigned, PQstatus, (const struct pg_conn *connection))                                                                                     \
    DO(int, PQsocket, (const struct pg_conn *connection))                                                                                          \
    DO(int, PQbackendPID, (const struct pg_conn *connection))                                                                                      \
    DO(int, PQserverVersion, (const struct pg_conn *connection))                                                                                   \
    DO(const char *, PQparameterStatus, (const struct pg_conn *connection, const char *name))                                                      \
    DO(char *, PQerrorMessage, (const struct pg_conn *connection))                                                                                 \
    DO(cpq_notice_receiver, PQsetNoticeReceiver, (struct pg_conn * connection, cpq_notice_receiver receiver, void *context))                       \
    DO(int, PQsetnonblocking, (struct pg_conn * connection, int is_nonblocking))                                                                   \
    DO(int, PQenterPipelineMode, (struct pg_conn * connection))                                                                                    \
    DO(int, PQpipelineSync, (struct pg_conn * connection))                                                                                         \
    DO(int, PQsendPrepare, (struct pg_conn * connection, const char *name, const char *query, int count, const unsigned *types))                   \
    DO(int, PQsendQueryPrepared,                                                                                                                   \
        (struct pg_conn * connection, const char *name, int count, const char *const *values, const int *lengths, const int *formats,              \
            int result_format))                                                                                                                    \
    DO(int, PQsendQueryParams,                                                                                                                     \
        (struct pg_conn * connection, const char *query, int count, const unsigned *types, const char *const *values, const int *lengths,          \
            const int *formats, int result_format))                                                                                                \
    DO(int, PQflush, (struct pg_conn * connection))                                                                                                \
    DO(int, PQconsumeInput, (struct pg_conn * connection))                                                                                         \
    DO(int, PQisBusy, (struct pg_conn * connection))                                                                                               \
    DO(cpq_notify *, PQnotifies, (struct pg_conn * connection))                                                                                    \
    DO(struct pg_result *, PQgetResult, (struct pg_conn * connection))                                                                             \
    DO(void, PQclear, (struct pg_result * result))                                                                                                 \
    DO(unsigned, PQresultStatus, (const struct pg_result *result))                                                                                 \
    DO(char *, PQresultErrorField, (const struct pg_result *result, int field))                                                                    \
    DO(char *, PQcmdStatus, (struct pg_result * result))                                                                                           \
    DO(char *, PQcmdTuples, (struct pg_result * result))                                                                                           \
    DO(int, PQntuples, (const struct pg_result *result))                                                                                           \
    DO(int, PQnfields, (const struct pg_result *result))                                                                                           \
    DO(unsigned, PQftype, (const struct pg_result *result, int column))                                                                            \
    DO(int, PQgetisnull, (const struct pg_result *result, int row, int column))                                                                    \
    DO(int, PQgetlength, (const struct pg_result *result, int row, int column))                                                                    \
    DO(char *, PQgetvalue, (const struct pg_result *result, int row, int column))

// Numbers of <libpq-fe.h> and <postgres_ext.h>: DO(name, value).
#define CPOSTGRES_NUMBERS(DO)               \
    DO(CONNECTION_OK, 0)                    \
    DO(CONNECTION_BAD, 1)                   \
    DO(PGRES_POLLING_FAILED, 0)             \
    DO(PGRES_POLLING_READING, 1)            \
    DO(PGRES_POLLING_WRITING, 2)            \
    DO(PGRES_POLLING_OK, 3)                 \
    DO(PGRES_COMMAND_OK, 1)                 \
    DO(PGRES_TUPLES_OK, 2)                  \
    DO(PGRES_FATAL_ERROR, 7)                \
    DO(PGRES_PIPELINE_SYNC, 10)             \
    DO(PGRES_PIPELINE_ABORTED, 11)          \
    DO(PG_DIAG_SEVERITY_NONLOCALIZED, 'V')  \
    DO(PG_DIAG_SQLSTATE, 'C')

#define CPOSTGRES_CONSTANT(name, value) C##name = value,
enum { CPOSTGRES_NUMBERS(CPOSTGRES_CONSTANT) };

#define CPOSTGRES_MEMBER(result, name, parameters) result(*name) parameters;
struct cpostgres {
    CPOSTGRES_FUNCTIONS(CPOSTGRES_MEMBER)
};

#define CPOSTGRES_SONAME "libpq.so.5"

// Opens the library for as long as the process runs. Returns NULL and fills every member, or why it could not: text of dlerror(3), valid until the
// thread's next call of it.
const char *cpostgres_open(const char *soname, struct cpostgres *functions);

#endif
