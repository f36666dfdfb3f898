#pragma once
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include "pbkdf2.h"
#include "sha256.h"

// Macros that Swift cannot import.
static const int waku_evp_public_key = EVP_PKEY_PUBLIC_KEY;
static const int waku_evp_key_pair = EVP_PKEY_KEYPAIR;
