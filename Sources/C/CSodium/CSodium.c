#include "CSodium.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

const char *csodium_open(const char *soname, struct csodium *functions) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    void *address;
#define RESOLVE(result, name, parameters)                     \
    if (!(address = dlsym(library, #name))) return dlerror(); \
    memcpy(&functions->name, &address, sizeof address);
    CSODIUM_FUNCTIONS(RESOLVE)
    return NULL;
}

// Tells package builders and administrators that the library is opened at run time: https://systemd.io/ELF_DLOPEN_METADATA/
#define NOTE                                                                                                                                  \
    "[{\"feature\":\"session\",\"description\":\"Session push server: signatures and encryption\",\"priority\":\"recommended\","              \
    "\"soname\":[\"libsodium.so.23\"]}]"
__attribute__((used, retain, section(".note.dlopen"))) _Alignas(uint32_t) static const struct {
    uint32_t name_size, description_size, type;
    char name[4];
    _Alignas(uint32_t) char description[sizeof(NOTE)];
} dlopen_note = {4, sizeof(NOTE), 0x407c0c0a, "FDO", NOTE};
