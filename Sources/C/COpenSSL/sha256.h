#pragma once
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <string.h>

// SHA-256 of secrets and HMAC-SHA256 with the state on the stack: OpenSSL's generic interface allocates and copies contexts for each call, which
// costs more than hashing a short message. Deprecated in OpenSSL 3 in favour of that interface; the states are wiped.
_Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wdeprecated-declarations\"")

static inline void waku_sha256(const uint8_t *bytes, size_t count, uint8_t output[32]) {
    SHA256_CTX state;
    SHA256_Init(&state);
    SHA256_Update(&state, bytes, count);
    SHA256_Final(output, &state);
    OPENSSL_cleanse(&state, sizeof state);
}

static inline void waku_hmac_sha256(const uint8_t *key, size_t key_count, const uint8_t *message, size_t count, uint8_t output[32]) {
    SHA256_CTX state;
    uint8_t block[64] = {0}, inner[32];
    if (key_count > sizeof block) waku_sha256(key, key_count, block);
    else if (key_count > 0) memcpy(block, key, key_count);

    for (int i = 0; i < 64; i++) block[i] ^= 0x36;
    SHA256_Init(&state);
    SHA256_Update(&state, block, sizeof block);
    SHA256_Update(&state, message, count);
    SHA256_Final(inner, &state);

    for (int i = 0; i < 64; i++) block[i] ^= 0x36 ^ 0x5c;
    SHA256_Init(&state);
    SHA256_Update(&state, block, sizeof block);
    SHA256_Update(&state, inner, sizeof inner);
    SHA256_Final(output, &state);

    OPENSSL_cleanse(&state, sizeof state);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(inner, sizeof inner);
}

_Pragma("clang diagnostic pop")
