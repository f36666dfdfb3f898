#ifndef CSODIUM_H
#define CSODIUM_H

#include <stddef.h>

// libsodium is not needed to build waku-push: it is opened at run time. These are the functions in use, as <sodium.h> of version 1.0.18 declares
// them: DO(result, name, parameters). A test compiles this list against the real header.
#define CSODIUM_FUNCTIONS(DO)                                                                                                                  \
    DO(int, sodium_init, (void))                                                                                                               \
    DO(int, crypto_sign_verify_detached,                                                                                                       \
       (const unsigned char *signature, const unsigned char *message, unsigned long long message_size, const unsigned char *public_key))       \
    DO(int, crypto_sign_ed25519_pk_to_curve25519, (unsigned char *x25519_key, const unsigned char *ed25519_key))                               \
    DO(int, crypto_scalarmult, (unsigned char *output, const unsigned char *secret, const unsigned char *point))                               \
    DO(int, crypto_scalarmult_base, (unsigned char *output, const unsigned char *secret))                                                      \
    DO(int, crypto_generichash,                                                                                                                \
       (unsigned char *output, size_t output_size, const unsigned char *input, unsigned long long input_size, const unsigned char *key,        \
        size_t key_size))                                                                                                                      \
    DO(int, crypto_aead_xchacha20poly1305_ietf_encrypt,                                                                                        \
       (unsigned char *sealed, unsigned long long *sealed_size, const unsigned char *plain, unsigned long long plain_size,                     \
        const unsigned char *associated, unsigned long long associated_size, const unsigned char *unused, const unsigned char *nonce,          \
        const unsigned char *key))                                                                                                             \
    DO(int, crypto_aead_xchacha20poly1305_ietf_decrypt,                                                                                        \
       (unsigned char *plain, unsigned long long *plain_size, unsigned char *unused, const unsigned char *sealed,                              \
        unsigned long long sealed_size, const unsigned char *associated, unsigned long long associated_size, const unsigned char *nonce,       \
        const unsigned char *key))                                                                                                             \
    DO(int, crypto_box_beforenm, (unsigned char *key, const unsigned char *public_key, const unsigned char *secret_key))                        \
    DO(int, crypto_box_easy_afternm,                                                                                                           \
       (unsigned char *sealed, const unsigned char *plain, unsigned long long plain_size, const unsigned char *nonce,                          \
        const unsigned char *key))                                                                                                             \
    DO(int, crypto_box_open_easy_afternm,                                                                                                      \
       (unsigned char *plain, const unsigned char *sealed, unsigned long long sealed_size, const unsigned char *nonce,                         \
        const unsigned char *key))                                                                                                             \
    DO(void, crypto_core_ed25519_scalar_add, (unsigned char *sum, const unsigned char *left, const unsigned char *right))                      \
    DO(int, crypto_scalarmult_ed25519_noclamp, (unsigned char *output, const unsigned char *scalar, const unsigned char *point))

#define CSODIUM_MEMBER(result, name, parameters) result(*name) parameters;
struct csodium {
    CSODIUM_FUNCTIONS(CSODIUM_MEMBER)
};

#define CSODIUM_SONAME "libsodium.so.23"

// Opens the library for as long as the process runs. Returns NULL and fills every member, or why it could not: text of dlerror(3), valid until the
// thread's next call of it.
const char *csodium_open(const char *soname, struct csodium *functions);

#endif
