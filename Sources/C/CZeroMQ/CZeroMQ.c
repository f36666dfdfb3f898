#include "CZeroMQ.h"

#include <dlfcn.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

const char *czeromq_open(const char *soname, struct czeromq *functions) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    void *address;
#define RESOLVE(result, name, parameters)                     \
    if (!(address = dlsym(library, #name))) return dlerror(); \
    memcpy(&functions->name, &address, sizeof address);
    CZEROMQ_FUNCTIONS(RESOLVE)
    return NULL;
}

long long czeromq_received_byte_count(int descriptor) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size)) return -1;
    // Older kernels know fewer members.
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return -1;
    return (long long)info.tcpi_bytes_received;
}

// Tells package builders and administrators that the library is opened at run time: https://systemd.io/ELF_DLOPEN_METADATA/
#define NOTE                                                                                                                                  \
    "[{\"feature\":\"session\",\"description\":\"Session push server: connections to storage servers\",\"priority\":\"recommended\","              \
    "\"soname\":[\"libzmq.so.5\"]}]"
__attribute__((used, retain, section(".note.dlopen"))) _Alignas(uint32_t) static const struct {
    uint32_t name_size, description_size, type;
    char name[4];
    _Alignas(uint32_t) char description[sizeof(NOTE)];
} dlopen_note = {4, sizeof(NOTE), 0x407c0c0a, "FDO", NOTE};
