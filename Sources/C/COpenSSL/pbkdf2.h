#pragma once
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <string.h>

// PBKDF2-HMAC-SHA256 with an empty salt and an output of one block, by OpenSSL's compression function. PKCS5_PBKDF2_HMAC makes each round through
// the provider's interface, copies of contexts included, and takes three times as long.
static inline void waku_sha256_step(SHA256_CTX state, uint8_t block[64]) {
    // Deprecated for applications that want a digest; there is no other interface to a single block.
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wdeprecated-declarations\"")
    SHA256_Transform(&state, block);
    _Pragma("clang diagnostic pop")
    for (int i = 0; i < 8; i++) {
        uint32_t word = __builtin_bswap32(state.h[i]);
        memcpy(block + 4 * i, &word, 4);
    }
}

// `key`: the password's HMAC key, filled with zeros to 64 bytes: a password of more than 64 bytes is hashed before.
static inline void waku_pbkdf2_sha256(const uint8_t key[64], uint32_t rounds, uint8_t output[32]) {
    SHA256_CTX inner, outer;
    uint8_t pad[64], block[64];
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wdeprecated-declarations\"")
    SHA256_Init(&inner);
    SHA256_Init(&outer);
    for (int i = 0; i < 64; i++) pad[i] = key[i] ^ 0x36;
    SHA256_Transform(&inner, pad);
    for (int i = 0; i < 64; i++) pad[i] = key[i] ^ 0x5c;
    SHA256_Transform(&outer, pad);
    _Pragma("clang diagnostic pop")

    // The first message is the number of the output's block, 1, in four bytes; then SHA-256's padding with the length of key and message in bits.
    memset(block, 0, 64);
    block[3] = 1;
    block[4] = 0x80;
    block[62] = (64 + 4) * 8 >> 8;
    block[63] = (64 + 4) * 8 & 0xff;
    memset(output, 0, 32);
    for (uint32_t round = 0; round < rounds; round++) {
        waku_sha256_step(inner, block);
        // A message of 32 bytes from here on.
        memset(block + 32, 0, 32);
        block[32] = 0x80;
        block[62] = (64 + 32) * 8 >> 8;
        block[63] = (64 + 32) * 8 & 0xff;
        waku_sha256_step(outer, block);
        for (int i = 0; i < 32; i++) output[i] ^= block[i];
    }
    OPENSSL_cleanse(&inner, sizeof inner);
    OPENSSL_cleanse(&outer, sizeof outer);
    OPENSSL_cleanse(pad, sizeof pad);
    OPENSSL_cleanse(block, sizeof block);
}
