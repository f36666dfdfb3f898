#pragma once
#include <curl/curl.h>
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
