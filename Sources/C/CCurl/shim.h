#pragma once
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

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

// A certificate message is parsed before any certificate in it is verified, and the server chooses the curves of the keys. To find the point of a
// compressed key on a curve that is given by its parameters instead of a name can take libcrypto a fraction of a second. RFC 5480 forbids such keys: a
// message with one is overwritten, so that libssl refuses it, and so is a compressed one (RFC 8879), which was not asked for.
static inline void waku_tls_refuse_curve_parameters(
    int is_sent, int version, int type, const void *message, size_t byte_count, SSL *connection, void *context) {
    // The beginning of the id of a field's type, which all parameters of curves have, whatever the type of the key.
    static const unsigned char field_type[] = {0x2A, 0x86, 0x48, 0xCE, 0x3D, 1};
    static const unsigned char compressed_certificate = 25;
    // A type and a length of three bytes.
    static const size_t header_byte_count = 4;
    unsigned char *bytes = (unsigned char *)message;
    if (is_sent || type != SSL3_RT_HANDSHAKE || byte_count <= header_byte_count) return;
    int is_refused = bytes[0] == compressed_certificate;
    if (bytes[0] == SSL3_MT_CERTIFICATE) {
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

static inline CURLcode waku_tls_limit_certificates(CURL *handle, void *tls, void *context) {
    // Usual chains have less than 10 KB. Lists of authorities for certificates of clients have the same limit.
    SSL_CTX_set_max_cert_list((SSL_CTX *)tls, 32 * 1024);
    SSL_CTX_set_msg_callback((SSL_CTX *)tls, waku_tls_refuse_curve_parameters);
    SSL_CTX_set_options((SSL_CTX *)tls, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
    return CURLE_OK;
}

/// Does nothing with a libcurl that uses another TLS library than this program, whose contexts are others.
static inline CURLcode waku_curl_limit_certificates(CURL *handle) {
    char library[32];
    snprintf(library, sizeof library, "OpenSSL/%lu.", OpenSSL_version_num() >> 28);
    const char *used = curl_version_info(CURLVERSION_NOW)->ssl_version;
    if (used == NULL || strncmp(used, library, strlen(library)) != 0) return CURLE_NOT_BUILT_IN;
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, waku_tls_limit_certificates);
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
