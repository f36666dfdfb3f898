@testable import SessionProtocol
import TestSupport
import WakuCrypto
import Core

/// Messages of Session's clients, of storage servers and of oxend.
extension Decoder {
    private struct Refused: Error {}

    static var session: [Decoder] { clients + storageServers }

    private static var clients: [Decoder] {
        let vector = SessionVectors.derived.sessionId
        let subscription =
            #"{"pubkey":"\#(hexString(vector.pubkey.bytes))","session_ed25519":"\#(hexString(vector.sessionEd25519.bytes))","#
            + #""namespaces":[-400,0,1],"data":true,"sig_ts":\#(vector.sigTs),"signature":"\#(hexString(vector.signature.bytes))","#
            + #""service":"firebase","service_info":{"token":"a\u00e9"},"enc_key":"\#(String(repeating: "ab", count: 32))"}"#
        let head = #"{"method":"POST","endpoint":"/subscribe?a=%20","headers":{}}"#
        let published = SessionPublishedVectors.recorded.onion.requests
        return [
            reading("JSON", [Array(subscription.utf8)]) { _ = try JSONValue(parsing: $0) },
            reading("subscriptions", [Array(subscription.utf8), Array("[\(subscription)]".utf8)]) { bytes in
                switch try RequestBody(parsing: bytes) {
                case .one(let value):
                    _ = try? UnsubscriptionForm(value)
                    _ = try SubscriptionForm(value).signedText
                case .many(let values):
                    for value in values { _ = try SubscriptionForm(value).signedText }
                }
            },
            message(
                "bencode", [Array("d1:ali1ei-2ee1:b3:abc1:cdee".utf8)], { try BencodeValue(parsing: $0[...], maximumValueCount: 1000) },
                { $0.encoded() }),
            reading("onion requests", [published.aesGcm.bytes, published.xchacha20.bytes]) { _ = try OnionRequest(parsing: $0) },
            reading("requests inside of onions", [BencodeValue.list([.text(head), .text("{}")]).encoded()]) {
                _ = try OnionInnerRequest(parsing: $0)
            },
        ]
    }

    private static var storageServers: [Decoder] {
        let key = String(repeating: "ab", count: 32)
        let file = #"[{"pubkey_x25519":"\#(key)","ip":"127.0.0.1","port":22,"swarm_id":"00000000000000ff"}]"#
        let oxend = #"{"service_node_states":[{"pubkey_x25519":"\#(key)","public_ip":"10.0.0.1","storage_lmq_port":9,"swarm_id":5}]}"#
        return [
            message(
                "reports of storage servers", [SessionVectors.derived.notifyMessageBencodeHex.bytes], { try NotifyMessage(parsing: $0) },
                { $0.encoded() }),
            reading("answers of storage servers", [Array("ld7:successi1eed7:errcodei6e5:error1:aee".utf8)]) { bytes in
                guard MonitorOutcome.outcomes(parsing: bytes, count: 2) != nil else { throw Refused() }
            },
            reading("files of storage servers", [Array(file.utf8)]) { _ = try StorageServerList(parsingFile: $0) },
            reading("oxend's storage servers", [Array(oxend.utf8)]) { _ = try StorageServerList(parsingOxend: $0) },
            reading("addresses of oxend", [Array("tcp://127.0.0.1:22".utf8), Array("curve://host:22/\(key)".utf8)]) { bytes in
                guard OxenAddress(String(decoding: bytes, as: UTF8.self)) != nil else { throw Refused() }
            },
            // Parts with a byte of 0 between them.
            reading(
                "parts of oxenmq", ["REPLY\u{0}tag\u{0}body", "notify.message\u{0}x", "FORBIDDEN\u{0}REPLY\u{0}tag"].map { Array($0.utf8) }
            ) { bytes in
                var session = OxenMQSession()
                _ = session.receive([Array("HELLO".utf8)])
                let parts = bytes.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
                if case .ignored = session.receive(parts) { throw Refused() }
            },
        ]
    }
}
