import Foundation
import Core
import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

/// The table of fields, with a test for each rule.
@Suite struct RequestFormTests {
    private let sample = RequestSample.sessionID()

    private func expectBadInput(_ sample: RequestSample, naming field: String, _ location: SourceLocation = #_sourceLocation) {
        let error = sample.subscriptionError()
        #expect(error?.code == .badInput, sourceLocation: location)
        #expect(error?.message.contains(field) == true, "\(error?.message ?? "")", sourceLocation: location)
    }

    @Test func wellFormedSubscriptionIsRead() throws {
        let form = try sample.subscription()
        let vector = SessionVectors.derived.sessionId
        #expect(form.authority.account.bytes == vector.pubkey.bytes)
        #expect(form.authority.sessionKey?.bytes == vector.sessionEd25519.bytes)
        #expect(form.namespaces == [-400, 0, 1, 2, 17])
        #expect(form.wantsData)
        #expect(form.authority.signedAt == vector.sigTs)
        #expect(form.authority.signature.value == vector.signature.bytes)
        #expect(form.device == SubscriberDevice(service: .firebase, token: "abc"))
        #expect(form.encryptionKey.secret.withBytes(Array.init) == [UInt8](repeating: 0xAB, count: 32))
        #expect(form.authority.delegation == .none)
    }

    @Test func unsubscriptionNeedsNoKeyAndNamespaces() throws {
        let form = try sample.with("namespaces", nil).with("data", nil).with("enc_key", "5").unsubscription()
        #expect(form.device.token.value == "abc")
    }

    @Test(arguments: [
        "pubkey", "session_ed25519", "namespaces", "data", "sig_ts", "signature", "service", "service_info", "enc_key",
    ])
    func missingFieldIsNamed(name: String) {
        expectBadInput(sample.with(name, nil), naming: name)
        expectBadInput(sample.with(name, "null"), naming: name)
        guard !["namespaces", "data", "enc_key"].contains(name) else { return }
        let error = sample.with(name, nil).unsubscriptionError()
        #expect(error?.code == .badInput && error?.message.contains(name) == true)
    }

    @Test(arguments: [("pubkey", 33), ("session_ed25519", 32), ("signature", 64), ("enc_key", 32)])
    func malformedBytesAreNamed(name: String, count: Int) {
        let digits = (name == "pubkey" ? "05" : "07") + String(repeating: "ab", count: count - 1)
        for wrong in [
            "\"\(digits.dropLast(2))\"", "\"\(digits)00\"", "\"\"", "\"\(digits.dropLast())\"",
            "\"" + String(repeating: "zz", count: count) + "\"", "\"" + String(repeating: "!", count: (count * 4 + 2) / 3) + "\"", "5",
            "true",
            "[1,2]", "{\"a\":1}", "\"" + String(repeating: "é", count: count) + "\"",
        ] { expectBadInput(sample.with(name, wrong), naming: name) }
    }

    @Test(arguments: [("subkey_tag", 32), ("subaccount", 36), ("subaccount_sig", 64)])
    func malformedDelegationIsNamed(name: String, count: Int) {
        for wrong in ["\"00\"", "5", "\"" + String(repeating: "00", count: count + 1) + "\""] {
            expectBadInput(RequestSample.subaccount(SessionVectors.derived.subaccount).with(name, wrong), naming: name)
        }
    }

    @Test(arguments: [1, 2, 3, 32, 33, 36, 64])
    func bytesAreHexOrBase64(count: Int) {
        guard count > 2 else { return }
        let content = (0..<count).map { UInt8(truncatingIfNeeded: 251 * $0 + 7) }
        let hex = hexString(content)
        let padded = Data(content).base64EncodedString()
        for text in [hex, hex.uppercased(), padded, String(padded.prefix { $0 != "=" })] {
            #expect(EncodedBytes.decode(text, count: count) == content)
        }
        #expect(EncodedBytes.decode(hex + "0", count: count) == nil)
        #expect(EncodedBytes.decode(padded + "=", count: count) == nil)
        #expect(EncodedBytes.decode(String(padded.dropFirst()) + "-", count: count) == nil)
        #expect(EncodedBytes.decode(" " + padded.dropFirst(), count: count) == nil)
    }

    @Test func base64WithStrayBitsIsRefused() {
        // 32 bytes: the last digit has two unused bits.
        let zeros = String(repeating: "A", count: 42)
        #expect(EncodedBytes.decode(zeros + "A", count: 32) != nil)
        #expect(EncodedBytes.decode(zeros + "B", count: 32) == nil)
    }

    @Test func sessionKeyOfAGroupIsIgnored() throws {
        for json in ["\"zz\"", "5", "null"] {
            #expect(try RequestSample.group().with("session_ed25519", json).subscription().authority.sessionKey == nil)
        }
    }

    @Test(arguments: [
        "[]", "[1,0]", "[0,0]", "[0,1,1]", "[-32769]", "[32768]", "[0,65536]", "[1.5]", "[\"0\"]", "[null]", "[[0]]", "0", "\"0\"",
        "{\"0\":0}",
        "[" + "1" + String(repeating: "0", count: 400) + "]", "[1e0]", "\(Array(0...256))",
    ])
    func namespacesThatAreNoAscendingListAreRefused(json: String) {
        expectBadInput(sample.with("namespaces", json), naming: "namespaces")
    }

    @Test func namespacesReachTheirLimits() throws {
        #expect(try sample.with("namespaces", "[-32768,-1,0,32767]").subscription().namespaces == [.min, -1, 0, .max])
        #expect(try sample.with("namespaces", "\(Array(0..<256))").subscription().namespaces.count == 256)
    }

    @Test(arguments: ["0", "1", "\"true\"", "\"\"", "[]", "{}"])
    func dataIsABool(json: String) {
        expectBadInput(sample.with("data", json), naming: "data")
    }

    @Test(arguments: [
        "\"1677520760\"", "1677520760.5", "true", "[]", "{}", "0", "-1", "-0", "9007199254740993", "9223372036854775808", "1e400", "1.0",
        String(repeating: "1", count: 90_000),
    ])
    func signatureTimeIsAnIntegerInRange(json: String) {
        expectBadInput(sample.with("sig_ts", json), naming: "sig_ts")
        #expect(sample.with("sig_ts", json).unsubscriptionError()?.code == .badInput)
    }

    @Test func signatureTimeReachesItsLimits() throws {
        #expect(try sample.with("sig_ts", "1").subscription().authority.signedAt == 1)
        #expect(try sample.with("sig_ts", "9007199254740992").subscription().authority.signedAt == 1 << 53)
    }

    @Test(arguments: [
        "\"x\"", "5", "[]", "[\"a\"]", "true", "{}", "{\"token\":null}", "{\"token\":5}", "{\"token\":[\"a\"]}", "{\"Token\":\"a\"}",
    ])
    func serviceInfoHasAToken(json: String) {
        expectBadInput(sample.with("service_info", json), naming: "service_info")
    }

    @Test(arguments: [
        ("apns", 64, true), ("apns", 63, false), ("apns", 65, false), ("apns", 0, false), ("apns-sandbox", 64, true),
        ("apns-sandbox", 128, false), ("firebase", 1, true), ("firebase", 4096, true), ("firebase", 0, false), ("firebase", 4097, false),
        ("huawei", 1, true), ("huawei", 4096, true), ("huawei", 4097, false),
    ])
    func tokenHasItsServicesLength(service: String, length: Int, isTaken: Bool) throws {
        for character in ["a", "😀"] {
            let token = String(repeating: character, count: length)
            let sample = sample.with("service", "\"\(service)\"").with("service_info", "{\"token\":\"\(token)\",\"other\":1}")
            if isTaken {
                #expect(try sample.subscription().device.token.value == token)
            } else {
                expectBadInput(sample, naming: "service_info")
            }
        }
    }

    @Test(arguments: ["fcm", "APNS", "apns ", "", String(repeating: "x", count: 500)])
    func unknownServiceIsNotAvailable(service: String) {
        let error = sample.with("service", "\"\(service)\"").subscriptionError()
        #expect(error?.code == .serviceNotAvailable && error?.message.contains("service") == true)
        #expect(sample.with("service", "\"\(service)\"").unsubscriptionError()?.code == .serviceNotAvailable)
    }

    @Test(arguments: ["5", "[\"apns\"]", "{}", "true"])
    func serviceThatIsNoStringIsMalformed(json: String) {
        expectBadInput(sample.with("service", json), naming: "service")
    }

    @Test func shapeComesBeforeService() {
        let unknown = sample.with("service", "\"fcm\"")
        expectBadInput(unknown.with("enc_key", "\"00\""), naming: "enc_key")
        expectBadInput(unknown.with("service_info", "[]"), naming: "service_info")
    }

    @Test func tagAndSubaccountExcludeEachOther() {
        let tag = "\"" + String(repeating: "01", count: 32) + "\""
        let delegated = RequestSample.subaccount(SessionVectors.derived.subaccount)
        expectBadInput(delegated.with("subkey_tag", tag), naming: "subkey_tag")
        expectBadInput(delegated.with("subaccount_sig", nil), naming: "subaccount_sig")
        expectBadInput(delegated.with("subaccount", nil), naming: "subaccount")
    }

    @Test func nullTagIsNone() throws {
        #expect(try sample.with("subkey_tag", "null").subscription().authority.delegation == .none)
    }

    @Test func unknownFieldsAreIgnored() throws {
        let more = sample.with("spns", "1").with("Pubkey", "\"x\"").with("extra", #"{"a":[null,{"b":"ü😀"}]}"#).with("", "0")
        #expect(try more.subscription().namespaces.count == 5)
    }

    @Test func secretsAreNotPrinted() throws {
        let form = try sample.with("service_info", "{\"token\":\"secret-token\"}").subscription()
        var dumped = ""
        dump(form, to: &dumped)
        let text = "\(form)\(String(reflecting: form))\(dumped)"
        for secret in ["secret-token", "193, 235, 166", "c1eba69f"] { #expect(!text.contains(secret)) }
    }

    @Test func messagesHoldNothingOfTheRequest() {
        let secret = "tokentokentoken"
        for name in ["pubkey", "session_ed25519", "signature", "enc_key", "service", "sig_ts", "data", "namespaces", "service_info"] {
            let error = sample.with(name, "\"\(secret)\"").subscriptionError()
            #expect(error != nil && error?.message.contains(secret) == false)
        }
    }

    // MARK: Bodies and answers

    @Test func bodyIsOneRequestOrAnArray() throws {
        guard case .one = try RequestBody(parsing: Array(sample.text.utf8)) else { throw Unexpected() }
        guard case .many(let entries) = try RequestBody(parsing: Array("[\(sample.text),7]".utf8)) else { throw Unexpected() }
        #expect(entries.count == 2)
        #expect(refusal { _ = try SubscriptionForm(entries[1]) }?.code == .badInput)
    }

    @Test(arguments: ["", " ", "null", "true", "5", "\"text\"", "[]", "{", "nothing"])
    func otherBodiesAreBadInput(text: String) {
        #expect(refusal { _ = try RequestBody(parsing: Array(text.utf8)) }?.code == .badInput)
    }

    @Test func bodySizesAreBounded() throws {
        let text = sample.text
        _ = try RequestBody(parsing: Array(text.utf8) + [UInt8](repeating: 0x20, count: 100_000 - text.utf8.count))
        #expect(
            refusal { _ = try RequestBody(parsing: Array(text.utf8) + [UInt8](repeating: 0x20, count: 100_001 - text.utf8.count)) }?.code
                == .badInput)
        let thousand = "[" + Array(repeating: "{}", count: 1000).joined(separator: ",") + "]"
        _ = try RequestBody(parsing: Array(thousand.utf8))
        let more = "[" + Array(repeating: "{}", count: 1001).joined(separator: ",") + "]"
        #expect(refusal { _ = try RequestBody(parsing: Array(more.utf8)) }?.code == .badInput)
    }

    @Test func answersAreThoseOfTheContract() {
        #expect(RequestAnswer.added.json == #"{"success":true,"added":true,"message":"Subscription successful"}"#)
        #expect(RequestAnswer.updated.json == #"{"success":true,"updated":true,"message":"Resubscription successful"}"#)
        #expect(
            RequestAnswer.removed(true).json == #"{"success":true,"removed":true,"message":"Device unsubscribed from push notifications"}"#)
        #expect(
            RequestAnswer.removed(false).json
                == #"{"success":true,"removed":false,"message":"Device was not subscribed to push notifications"}"#)
        #expect(
            RequestAnswer.json(of: [.added, .failed(RequestError(.error, "a \"b\""))])
                == #"[{"success":true,"added":true,"message":"Subscription successful"},{"error":4,"message":"a \"b\""}]"#)
        #expect(RequestError.Code.allCases.map(\.rawValue) == [1, 2, 3, 4, 5])
    }

    @Test func mutatedRequestsAreAnsweredOrTaken() throws {
        var random = SeededGenerator(seed: 5)
        let seeds = [sample.text, RequestSample.subaccount(SessionVectors.derived.subaccount).text, "[\(sample.text)]"].map {
            Array($0.utf8)
        }
        var (taken, refused) = (0, 0)
        for _ in 0..<5000 {
            let bytes = random.damaged(random.pick(seeds))
            guard let body = try? RequestBody(parsing: bytes) else { continue }
            let entries = if case .many(let entries) = body { entries } else { [try JSONValue(parsing: bytes)] }
            for entry in entries {
                if let error = refusal({ _ = try SubscriptionForm(entry) }) {
                    refused += 1
                    #expect(error.message.utf8.count < 200)
                } else {
                    taken += 1
                }
                _ = try? UnsubscriptionForm(entry)
            }
        }
        #expect(taken > 10 && refused > 10)
    }

    private struct Unexpected: Error {}
}
