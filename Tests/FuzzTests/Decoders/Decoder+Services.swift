import Core
import Foundation
import PushReceiver
import TestSupport
import Waku
import WakuCrypto

@testable import CurlClient
@testable import Delivery
@testable import NwakuRelay

/// Answers of nwaku, gorush and push services, and the messages that a Web Push receiver gets.
extension Decoder {
    static var services: [Decoder] { nwaku + gorush + webPush }

    private struct Refused: Error {}

    private static func text(_ name: String, _ seeds: [String], _ read: @escaping @Sendable (String) throws -> Void) -> Decoder {
        reading(name, seeds.map { Array($0.utf8) }) { try read(String(decoding: $0, as: UTF8.self)) }
    }

    /// nil: refused.
    private static func found(_ value: (some Any)?) throws {
        guard value != nil else { throw Refused() }
    }

    private static var nwaku: [Decoder] {
        let message =
            #"{"payload":"AQID","contentTopic":"/waku/1/0x01020304/rfc26","version":1,"timestamp":1700000000000000000,"#
            + #""ephemeral":false,"meta":"BA=="}"#
        let hash = "0x" + String(repeating: "ab", count: 32)
        let page =
            #"{"requestId":"a","statusCode":200,"statusDesc":"OK","messages":[{"messageHash":"\#(hash)","message":\#(message),"#
            + #""pubsubTopic":"/waku/2/rs/16/32"}],"paginationCursor":"\#(hash)"}"#
        let record =
            "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8"
        return [
            reading("messages as JSON", [Array("[\(message)]".utf8), Array("null".utf8)]) { bytes in
                let all = MessageList(json: bytes)
                let wanted = MessageList(json: bytes, wants: { _ in true })
                // The filter decides only about messages that are read without it.
                precondition(all?.elementCount == wanted?.elementCount)
                precondition((wanted?.messages.count ?? 0) <= (all?.messages.count ?? 0))
                for message in all?.messages ?? [] {
                    let again = MessageList(json: Array("[".utf8) + MessageJSON.encode(message) + Array("]".utf8))
                    precondition(again?.messages == [message], "written otherwise than it was read")
                }
                try found(all)
            },
            reading("pages of a store as JSON", [Array(page.utf8)]) { try found(StoreAnswer(json: $0)) },
            reading(
                "health of nwaku", [Array(#"{"nodeHealth":"READY","protocolsHealth":[{"Relay":"READY","desc":"a"}]}"#.utf8)]
            ) { _ = try JSONDecoder().decode(NodeHealthJSON.self, from: Data($0)).health },
            // An ENR with the entries that its signature would cover: the signature is not checked here.
            Decoder(name: "shards in records", seeds: [Base64.decodeURL(record.dropFirst(4).utf8) ?? []]) { bytes in
                _ = RelayShards(record: "enr:" + Base64URL.encode(bytes))
                return .taken
            },
        ]
    }

    private static var gorush: [Decoder] {
        let failure =
            #"{"notif_id":"a","type":"failed-push","platform":"ios","token":"**********a**********","message":"m","error":"Unregistered"}"#
        return [
            Decoder(name: "replies of gorush", seeds: [Array(#"{"success":"ok","counts":2,"logs":[\#(failure)]}"#.utf8)]) { bytes in
                let reply = GorushReply(parsing: bytes)
                for failure in reply.failures { _ = (failure.verdict, failure.masks(DeviceToken("token"))) }
                return .taken
            },
            reading("feedback of gorush", [Array(failure.utf8)]) { try found(GorushFailure(parsing: $0)) },
            Decoder(
                name: "errors of push services", seeds: [Array("a BadDeviceToken".utf8), Array("Requested entity was not found.".utf8)]
            ) {
                for platform in [Platform.apn, .firebase, .huawei, nil] {
                    _ = FailureReason(platform: platform, error: String(decoding: $0, as: UTF8.self))
                }
                return .taken
            },
            text("times to retry after", ["120", "Sun, 06 Nov 1994 08:49:37 GMT"]) {
                try found(RetryAfter.parse($0, now: Timestamp(rawValue: 0)))
            },
            text("dates of HTTP", ["Sun, 06 Nov 1994 08:49:37 GMT"]) { try found(HTTPDate.secondsSince1970($0)) },
            reading("settings of gorush", [Array("core:\n  sync: true\nios:\n  enabled: false\n".utf8)]) {
                try found(GorushInspection.Configuration(yaml: $0))
            },
            text("base URLs", ["http://127.0.0.1:8088", "https://[::1]/path"]) { _ = try HTTPBaseURL(parsing: $0) },
        ]
    }

    private static var webPush: [Decoder] {
        let vectors = WebPushVectors.recorded.vectors
        let subscriptions = vectors.prefix(1).map { vector in
            #"{"endpoint":"https://push.example:8443/a?b","expirationTime":null,"keys":{"p256dh":"\#(vector.uaPublic)","#
                + #""auth":"\#(vector.auth)"},"vapid":"\#(vector.asPublic)"}"#
        }
        let receiver = ReceiverSubscription(base: "https://push.example/a", vapidKey: nil)
        let opening = vectors.first.flatMap { vector in
            Base64URL.decode(vector.uaPrivate).flatMap { P256PrivateKey(bytes: $0) }.map { ($0, Base64URL.decode(vector.auth) ?? []) }
        }
        let claims = Base64URL.encode(Array(#"{"aud":"https://push.example","exp":1700000000,"sub":"mailto:a@b"}"#.utf8))
        let header = Base64URL.encode(Array(#"{"typ":"JWT","alg":"ES256"}"#.utf8))
        let signature = Base64URL.encode([UInt8](repeating: 1, count: 64))
        let authorizations = vectors.prefix(1).map { "vapid t=\(header).\(claims).\(signature), k=\($0.asPublic)" }
        return [
            reading("Web Push subscriptions", subscriptions.map { Array($0.utf8) }) { bytes in
                guard let subscription = PushSubscription(json: bytes) else { throw Refused() }
                precondition(PushSubscription(json: subscription.json) == subscription, "written otherwise than it was read")
            },
            reading("kept subscriptions of receivers", (receiver.map { [$0.json] } ?? [])) { bytes in
                guard let subscription = ReceiverSubscription(json: bytes) else { throw Refused() }
                precondition(ReceiverSubscription(json: subscription.json) != nil, "written otherwise than it was read")
            },
            reading("push messages", vectors.prefix(1).compactMap { Base64URL.decode($0.body) }) { bytes in
                guard let (key, secret) = opening else { throw Refused() }
                _ = try WebPushEncryption.open(bytes, key: key, secret: secret)
            },
            text("authorizations of push messages", authorizations) { try found(VAPIDAuthorization(parsing: $0)) },
            reading("VAPID keys", vectors.prefix(1).map { Array($0.asPrivate.utf8) }) { try found(VAPIDKey(file: $0)) },
        ]
    }
}
