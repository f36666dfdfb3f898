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

static inline int waku_bio_pending(BIO *bio) { return (int)BIO_pending(bio); }

static inline EVP_PKEY *waku_generate_p256(void) { return EVP_EC_gen("P-256"); }

// NULL unless `value` is in the syntax of OpenSSL's configuration for this extension.
static inline X509_EXTENSION *waku_x509_extension(X509 *issuer, X509 *subject, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, subject, NULL, NULL, 0);
    return X509V3_EXT_conf_nid(NULL, &context, kind, value);
}
