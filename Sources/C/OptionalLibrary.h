// The definitions of a target whose library is opened at run time.

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OPTIONAL_LIBRARY_RESOLVE(result, name, parameters)    \
    if (!(address = dlsym(library, #name))) return dlerror(); \
    memcpy(&functions->name, &address, sizeof address);

// Defines TABLE_open for the functions of a struct TABLE.
#define OPTIONAL_LIBRARY_OPEN(table, FUNCTIONS)                               \
    const char *table##_open(const char *soname, struct table *functions) {   \
        void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);                \
        if (!library) return dlerror();                                       \
        void *address;                                                        \
        FUNCTIONS(OPTIONAL_LIBRARY_RESOLVE)                                   \
        return NULL;                                                          \
    }

// Tells package builders and administrators that the library is opened at run time: https://systemd.io/ELF_DLOPEN_METADATA/
#define OPTIONAL_LIBRARY_NOTE(feature, description, priority, soname)                                        \
    OPTIONAL_LIBRARY_ELF_NOTE(                                                                               \
        "[{\"feature\":\"" feature "\",\"description\":\"" description "\",\"priority\":\"" priority "\","     \
        "\"soname\":[\"" soname "\"]}]")
#define OPTIONAL_LIBRARY_ELF_NOTE(text)                                                                        \
    __attribute__((used, retain, section(".note.dlopen"))) _Alignas(uint32_t) static const struct {            \
        uint32_t name_size, description_size, type;                                                            \
        char name[4];                                                                                          \
        _Alignas(uint32_t) char description[sizeof(text)];                                                     \
    } dlopen_note = {4, sizeof(text), 0x407c0c0a, "FDO", text};
