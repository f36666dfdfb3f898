#pragma once
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call: one typed shim for each kind of argument.

static inline CURLcode waku_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode waku_curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode waku_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode waku_curl_set_write(CURL *handle, CURLoption option, size_t (*callback)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode waku_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode waku_curl_get_pointer(CURL *handle, CURLINFO info, void **value) {
    return curl_easy_getinfo(handle, info, value);
}

/// When the certificate of a connection's server expires, in seconds since 1970; -1 without TLS or CURLOPT_CERTINFO.
static inline long long waku_curl_certificate_end(CURL *handle) {
    static const char name[] = "Expire date:";
    struct curl_certinfo *found = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_CERTINFO, &found) != CURLE_OK || found == NULL || found->num_of_certs < 1) return -1;
    for (struct curl_slist *field = found->certinfo[0]; field != NULL; field = field->next) {
        if (strncmp(field->data, name, sizeof name - 1) == 0) return curl_getdate(field->data + sizeof name - 1, NULL);
    }
    return -1;
}

static inline CURLcode waku_curl_set_opensocket(
    CURL *handle, curl_socket_t (*callback)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline const void *waku_curl_socket_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

static const curl_socket_t waku_curl_socket_bad = CURL_SOCKET_BAD;

// The number of certificates in a message, or more. A server's message begins with a length of three bytes, in TLS 1.3 also with an empty context.
static inline int waku_tls_certificate_count(const unsigned char *message, size_t byte_count, int version) {
    int count = 0;
    for (size_t index = version == TLS1_3_VERSION ? 8 : 7; index + 3 <= byte_count; count++) {
        index += 3 + ((size_t)message[index] << 16 | message[index + 1] << 8 | message[index + 2]);
        if (version != TLS1_3_VERSION) continue;
        if (index + 2 > byte_count) return count + 1;
        index += 2 + (message[index] << 8 | message[index + 1]);
    }
    return count;
}

// libssl parses all certificates of a server before it verifies any, and the server chooses the curves of their keys. Messages that would take long
// are overwritten, so that libssl refuses them:
// - To find the point of a compressed key on a curve that is given by its parameters instead of a name can take libcrypto a fraction of a second.
//   RFC 5480 forbids such keys.
// - On P-224 it takes half a millisecond, and 32 KiB hold 230 such certificates. Usual chains have at most five.
// - Compressed messages (RFC 8879) were not asked for.
//
// libssl reads messages until data comes: it would not return while a server sends updates of keys, each of which takes some microseconds. The
// argument counts a connection's messages, usually ten; after too many, libssl reads no more.
static inline void waku_tls_check_message(
    int is_sent, int version, int type, const void *message, size_t byte_count, SSL *connection, void *argument) {
    // The beginning of the id of a field's type, which all parameters of curves have, whatever the type of the key.
    static const unsigned char field_type[] = {0x2A, 0x86, 0x48, 0xCE, 0x3D, 1};
    static const unsigned char compressed_certificate = 25;
    // A type and a length of three bytes.
    static const size_t header_byte_count = 4;
    unsigned char *bytes = (unsigned char *)message;
    if (is_sent || type != SSL3_RT_HANDSHAKE) return;
    uintptr_t count = (uintptr_t)argument + 1;
    SSL_set_msg_callback_arg(connection, (void *)count);
    if (count > 64) SSL_set_shutdown(connection, SSL_RECEIVED_SHUTDOWN);
    if (byte_count <= header_byte_count) return;
    int is_refused = bytes[0] == compressed_certificate;
    if (bytes[0] == SSL3_MT_CERTIFICATE) {
        is_refused |= waku_tls_certificate_count(bytes, byte_count, version) > 10;
        for (size_t index = header_byte_count; !is_refused && index + sizeof field_type <= byte_count; index++) {
            is_refused = memcmp(bytes + index, field_type, sizeof field_type) == 0;
        }
    }
    if (is_refused) memset(bytes + header_byte_count, 0xFF, byte_count - header_byte_count);
}

// Headers before those of OpenSSL 3.2 lack it, which the library at run time may have.
#ifndef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
#define SSL_OP_NO_RX_CERTIFICATE_COMPRESSION ((uint64_t)1 << 33)
#endif

static inline CURLcode waku_tls_limit_work(CURL *handle, void *tls, void *context) {
    SSL_CTX *settings = (SSL_CTX *)tls;
    // Usual chains have less than 10 KB. Lists of authorities for certificates of clients have the same limit.
    SSL_CTX_set_max_cert_list(settings, 32 * 1024);
    SSL_CTX_set_msg_callback(settings, waku_tls_check_message);
    SSL_CTX_set_options(settings, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    // In TLS 1.2 a server chooses the numbers of a finite-field exchange: of 10,000 bits they take a second. The list of groups is without those of
    // TLS 1.3, of which the largest takes 0.1 s.
    if (SSL_CTX_set_cipher_list(settings, "DEFAULT:!kDHE") != 1) return CURLE_SSL_CIPHER;
    // X25519 is missing in FIPS mode.
    if (SSL_CTX_set1_groups_list(settings, "X25519:P-256:P-384:P-521") != 1 && SSL_CTX_set1_groups_list(settings, "P-256:P-384:P-521") != 1) {
        return CURLE_SSL_CIPHER;
    }
    return CURLE_OK;
}

/// Does nothing with a libcurl that uses another TLS library than this program, whose contexts are others.
static inline CURLcode waku_curl_limit_tls_work(CURL *handle) {
    char library[32];
    snprintf(library, sizeof library, "OpenSSL/%lu.", OpenSSL_version_num() >> 28);
    const char *used = curl_version_info(CURLVERSION_NOW)->ssl_version;
    if (used == NULL || strncmp(used, library, strlen(library)) != 0) return CURLE_NOT_BUILT_IN;
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, waku_tls_limit_work);
}

/// Reads the system's authorities from libcurl's default file alone, which it keeps in memory for a day. With a default folder, too, as on Debian, it
/// parses the file again for each connection: 20 ms.
static inline void waku_curl_use_default_authorities_file(CURL *handle) {
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    if (info->age < CURLVERSION_SEVENTH || info->cainfo == NULL || access(info->cainfo, R_OK) != 0) return;
    curl_easy_setopt(handle, CURLOPT_CAPATH, NULL);
}

// Macros with casts and shifts, which Swift cannot import.

static inline CURLcode waku_curl_global_init(void) {
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}

static inline CURLcode waku_curl_set_basic_auth(CURL *handle) {
    return curl_easy_setopt(handle, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
}

static inline CURLcode waku_curl_set_bearer_auth(CURL *handle) {
    return curl_easy_setopt(handle, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
}

static inline CURLcode waku_curl_set_tls_1_2(CURL *handle) {
    return curl_easy_setopt(handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

static inline CURLcode waku_curl_set_http_2_tls(CURL *handle) {
    return curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
}

/// Why a message came off the multi handle: Swift sees the union that holds it as raw bytes.
static inline CURLcode waku_curl_message_result(const CURLMsg *message) {
    return message->data.result;
}
