import Core
import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

@Suite("Web Push devices of Session")
struct WebPushDeviceTests {
    private static let receiver = WebPushReceiver()
    private static let point = Base64URL.encode(receiver.key.publicKey.bytes)
    private static let auth = Base64URL.encode(receiver.secret)

    private func device(_ info: String) throws -> SubscriberDevice {
        let json = try JSONValue(parsing: Array(#"{"service":"webpush","service_info":\#(info)}"#.utf8))
        return try RequestFields(json).device()
    }

    @Test("A device is its endpoint, and its token holds the whole subscription")
    func device() throws {
        let plain = try device(#"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)"}"#)
        #expect(plain.service == .webPush)
        let subscription = try #require(PushSubscription(json: Array(plain.token.value.utf8)))
        #expect(subscription == Self.receiver.subscription("https://push.example/a"))
        #expect(plain == SubscriberDevice(service: .webPush, token: plain.token.value) && plain.subscription == subscription)
        let named = try device(
            #"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)","vapid":"\#(Self.point)"}"#)
        #expect(PushSubscription(json: Array(named.token.value.utf8))?.vapidKey == Self.receiver.key.publicKey)
        #expect(named.webPushKey == Self.receiver.key.publicKey)
        let other = try #require(WebPushReceiver().subscription("https://push.example/a"))
        let devices = [subscription, other].map {
            SubscriberDevice(service: .webPush, token: String(decoding: $0.json, as: UTF8.self))
        }
        #expect(devices.map(\.identifier) == ["https://push.example/a", "https://push.example/a"])
        #expect(SubscriberDevice(service: .firebase, token: "t").identifier == "t")
    }

    @Test("Wrong subscriptions are bad input")
    func wrong() {
        for info in [
            "{}", #"{"token":"x"}"#, #"{"endpoint":"https://push.example/a"}"#,
            #"{"endpoint":"http://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)"}"#,
            #"{"endpoint":"https://push.example/a","p256dh":"\#(Self.auth)","auth":"\#(Self.auth)"}"#,
            #"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":1}"#,
            #"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)","vapid":"\#(Self.auth)"}"#,
            #"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)","vapid":1}"#,
        ] {
            #expect(throws: RequestError.self) { try device(info) }
        }
    }

    @Test("To unsubscribe, the endpoint is enough, and other members are ignored")
    func ended() throws {
        func device(_ info: String) throws -> SubscriberDevice {
            try RequestFields(try JSONValue(parsing: Array(#"{"service":"webpush","service_info":\#(info)}"#.utf8))).endedDevice()
        }
        for more in ["", #","p256dh":"\#(Self.point)","auth":"\#(Self.auth)""#, #","p256dh":null,"auth":1,"vapid":"x""#] {
            let ended = try device(#"{"endpoint":"https://push.example/a"\#(more)}"#)
            let subscribed = try self.device(#"{"endpoint":"https://push.example/a","p256dh":"\#(Self.point)","auth":"\#(Self.auth)"}"#)
            #expect(ended.identifier == subscribed.identifier && ended.service == .webPush)
            #expect(ended.origin == subscribed.origin && ended.origin != nil)
        }
        let long = "https://push.example/" + String(repeating: "a", count: PushSubscription.endpointByteLimit)
        for info in ["{}", #"{"token":"x"}"#, #"{"endpoint":1}"#, #"{"endpoint":"http://push.example/a"}"#, #"{"endpoint":"\#(long)"}"#] {
            #expect(throws: RequestError.self) { try device(info) }
        }
    }

    @Test("A payload with the most data fits into a push message, and longer data is left out")
    func payload() throws {
        let limit = NotificationPayload.maximumWebPushByteCount - 384
        let account = try SessionAccount.sessionID().id
        for (count, isTruncated) in [(0, false), (limit, false), (limit + 1, true)] {
            let message = NotifyMessage(
                account: account, hash: String(repeating: "h", count: 43), namespace: 0, storedAt: 1_700_000_000_000,
                expiresAt: 1_701_000_000_000, data: [UInt8](repeating: 7, count: count))
            let payload = NotificationPayload(message, wantsData: true, service: .webPush)
            #expect(payload.isTruncated == isTruncated && payload.carriesData != isTruncated)
            #expect(payload.padded.count <= NotificationPayload.maximumWebPushByteCount)
            // Nonce and tag, base64, and the JSON around it.
            #expect((payload.padded.count + 40 + 2) / 3 * 4 + 100 <= WebPushEncryption.maximumContentByteCount)
        }
    }
}
