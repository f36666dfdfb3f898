#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Macros and variadic functions that Swift cannot import.

// TLS 1.2 and later, without renegotiation; connections that wait keep no buffers.
static inline int waku_tls_harden(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

// Sends the certificate after the server's own.
static inline int waku_tls_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// Whether a text of PEM was read to its end: it has no further part of the kind.
static inline int waku_pem_has_ended(void) {
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static inline int waku_bio_pending(BIO *bio) { return (int)BIO_pending(bio); }

static inline EVP_PKEY *waku_generate_p256(void) { return EVP_EC_gen("P-256"); }

// NULL unless `value` is in the syntax of OpenSSL's configuration for this extension.
static inline X509_EXTENSION *waku_x509_extension(X509 *issuer, X509 *subject, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, subject, NULL, NULL, 0);
    return X509V3_EXT_conf_nid(NULL, &context, kind, value);
}

// The number of certificates in a PEM text; -1 if a part of it is damaged or cut off, so that libssl, and libcurl with it, can't load it as a file of
// authorities.
static inline int waku_count_certificates(const void *text, int byte_count) {
    BIO *input = BIO_new_mem_buf(text, byte_count);
    if (input == NULL) return -1;
    STACK_OF(X509_INFO) *found = PEM_X509_INFO_read_bio(input, NULL, NULL, (void *)"");
    BIO_free(input);
    if (found == NULL) return -1;
    int count = 0;
    for (int index = 0; index < sk_X509_INFO_num(found); index++) count += sk_X509_INFO_value(found, index)->x509 != NULL;
    sk_X509_INFO_pop_free(found, X509_INFO_free);
    return count;
}
