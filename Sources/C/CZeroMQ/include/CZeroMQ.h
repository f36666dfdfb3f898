#ifndef CZEROMQ_H
#define CZEROMQ_H

#include <stddef.h>

// Swift's module of the C library lacks these two, by which the server waits.
#include <sys/epoll.h>
#include <sys/eventfd.h>

// libzmq is not needed to build waku-push: it is opened at run time. These are the types, numbers and functions in use, as <zmq.h> of version 4.3.4
// declares them: DO(result, name, parameters). A test compiles them against the real header.

typedef struct czmq_msg_t {
    _Alignas(8) unsigned char opaque[64];
} czmq_msg_t;

#define CZEROMQ_FUNCTIONS(DO)                                                                                  \
    DO(int, zmq_errno, (void))                                                                                 \
    DO(const char *, zmq_strerror, (int number))                                                               \
    DO(int, zmq_has, (const char *capability))                                                                 \
    DO(void *, zmq_ctx_new, (void))                                                                            \
    DO(int, zmq_ctx_term, (void *context))                                                                     \
    DO(int, zmq_ctx_set, (void *context, int option, int value))                                               \
    DO(void *, zmq_socket, (void *context, int type))                                                          \
    DO(int, zmq_close, (void *socket))                                                                         \
    DO(int, zmq_setsockopt, (void *socket, int option, const void *value, size_t size))                        \
    DO(int, zmq_getsockopt, (void *socket, int option, void *value, size_t *size))                             \
    DO(int, zmq_bind, (void *socket, const char *address))                                                     \
    DO(int, zmq_send, (void *socket, const void *bytes, size_t size, int flags))                               \
    DO(int, zmq_msg_init, (czmq_msg_t * message))                                                              \
    DO(int, zmq_msg_recv, (czmq_msg_t * message, void *socket, int flags))                                     \
    DO(int, zmq_msg_close, (czmq_msg_t * message))                                                             \
    DO(void *, zmq_msg_data, (czmq_msg_t * message))                                                           \
    DO(size_t, zmq_msg_size, (const czmq_msg_t *message))                                                      \
    DO(int, zmq_msg_more, (const czmq_msg_t *message))

// Numbers of <zmq.h>: DO(name, value).
#define CZEROMQ_NUMBERS(DO)                           \
    DO(ZMQ_MAX_SOCKETS, 2)                            \
    DO(ZMQ_ROUTER, 6)                                 \
    DO(ZMQ_FD, 14)                                    \
    DO(ZMQ_LINGER, 17)                                \
    DO(ZMQ_SNDHWM, 23)                                \
    DO(ZMQ_RCVHWM, 24)                                \
    DO(ZMQ_BACKLOG, 19)                               \
    DO(ZMQ_LAST_ENDPOINT, 32)                         \
    DO(ZMQ_ROUTER_MANDATORY, 33)                      \
    DO(ZMQ_CURVE_SERVER, 47)                          \
    DO(ZMQ_CURVE_SECRETKEY, 49)                       \
    DO(ZMQ_DONTWAIT, 1)                               \
    DO(ZMQ_SNDMORE, 2)

#define CZEROMQ_CONSTANT(name, value) C##name = value,
enum { CZEROMQ_NUMBERS(CZEROMQ_CONSTANT) };

#define CZEROMQ_MEMBER(result, name, parameters) result(*name) parameters;
struct czeromq {
    CZEROMQ_FUNCTIONS(CZEROMQ_MEMBER)
};

#define CZEROMQ_SONAME "libzmq.so.5"

// Opens the library for as long as the process runs. Returns NULL and fills every member, or why it could not: text of dlerror(3), valid until the
// thread's next call of it.
const char *czeromq_open(const char *soname, struct czeromq *functions);

#endif
