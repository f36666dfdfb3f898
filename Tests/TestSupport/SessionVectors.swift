import Foundation

/// Vectors for Session's push server; see `Vectors/README.md`.
package struct SessionVectors: Decodable, Sendable {
    package static let derived: SessionVectors = recordedVectors("session")

    package let sessionId: SessionID
    package let unsubscribe: Signed
    package let group03: Group
    package let subaccount: Subaccount
    package let subaccountWithoutReadBitMustFail: Subaccount
    package let subaccountWrongPrefixMustFail: Subaccount
    package let subaccountAnyPrefix: Subaccount
    package let subkeyTagOld: SubkeyTag
    package let notificationWithData: Notification
    package let notificationNoData: Notification
    package let notificationTooBig: Notification
    package let notifyMessageBencodeHex: Hex
    /// Hexadecimal with `0x`, by account.
    package let swarmSpace: [String: String]

    package struct SessionID: Decodable, Sendable {
        package let sessionEd25519: Hex
        package let pubkey: Hex
        package let sigTs: Int64
        package let namespaces: [Int]
        package let data: Bool
        package let monitorMessage: String
        package let signature: Hex
    }

    package struct Signed: Decodable, Sendable {
        package let message: String
        package let signature: Hex
    }

    package struct Group: Decodable, Sendable {
        package let pubkey: Hex
        package let monitorMessage: String
        package let signature: Hex
        package let namespaces: [Int]
        package let data: Bool
        package let sigTs: Int64
    }

    package struct Subaccount: Decodable, Sendable {
        package let subaccount: Hex
        package let subaccountSig: Hex
        package let signature: Hex
    }

    package struct SubkeyTag: Decodable, Sendable {
        package let pubkey: Hex
        package let subkeyTag: Hex
        package let derivedVerifyKey: Hex
        package let monitorMessage: String
        package let signature: Hex
    }

    package struct Notification: Decodable, Sendable {
        package let encKey: Hex
        package let nonce: Hex
        package let metadata: String
        package let plaintextPaddedHex: Hex
        package let encPayloadB64: String
    }
}

/// Vectors published with libsession, and subkey tags.
package struct SessionPublishedVectors: Decodable, Sendable {
    package static let recorded: SessionPublishedVectors = recordedVectors("session-published")

    package let onion: Onion
    package let notification: Notification
    package let subkeys: [Subkey]

    package struct Onion: Decodable, Sendable {
        package let sealed: Keyed
        package let requests: Keyed
        package let plain: String
    }

    package struct Keyed: Decodable, Sendable {
        package let clientPublic: Hex
        package let clientSecret: Hex?
        package let serverPublic: Hex
        package let serverSecret: Hex
        package let aesGcm: Hex
        package let xchacha20: Hex
    }

    package struct Notification: Decodable, Sendable {
        package let encKey: Hex
        package let payload: Hex
        package let plain: String
    }

    package struct Subkey: Decodable, Sendable {
        package let pubkey: Hex
        package let sessionEd25519: Hex
        package let subkeyTag: Hex
        package let carries: Bool
        package let monitorMessage: String
        package let signature: Hex
        package let signatureWithCarryKept: Hex?
    }
}
