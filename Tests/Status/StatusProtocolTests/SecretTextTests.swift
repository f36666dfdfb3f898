import Core
import StatusProtocol
import Testing

@Suite struct SecretTextTests {
    private static let uuid = "9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3a"
    private static let digits = "9f1b0c6e52d34b7a8a570d2c6d1e4f3a"

    @Test(arguments: [
        uuid, uuid.uppercased(), digits, digits.uppercased(), "urn:uuid:" + uuid, "URN:UUID:" + uuid, "Urn:uUid:" + uuid.uppercased(),
        "{" + uuid + "}", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF",
    ])
    func everyFormOfAUUIDIsTaken(_ text: String) {
        #expect(AccessToken(text).isUUID)
    }

    @Test(arguments: [
        "", "-", String(uuid.dropLast()), uuid + "0", uuid.replacing("-", with: "_"), "uuid:" + uuid, "urn:uuid;" + uuid,
        "urn-uuid-" + uuid,
        "urn\u{1A}uuid\u{1A}" + uuid, "urn:uuid:" + digits, "{" + uuid, uuid + "}", "{" + digits + "}", "(" + uuid + ")", "{" + uuid + "{",
        "}" + uuid + "{", uuid.replacing("f", with: "g"), digits.replacing("f", with: "g"), String(digits.dropLast()), digits + "0",
        "9f1b0c6e5-2d3-4b7a-8a57-0d2c6d1e4f3a", " " + digits, uuid + " ", "0x" + digits, "9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f\0a",
        "９f1b0c6e52d34b7a8a570d2c6d1e4f", String(repeating: "-", count: 36), String(repeating: "0", count: 36),
    ])
    func everythingElseIsNoUUID(_ text: String) {
        #expect(!AccessToken(text).isUUID)
    }

    @Test func tokensThatUnicodeHoldsForEqualDiffer() {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        #expect(composed == decomposed)
        #expect(AccessToken(composed) != AccessToken(decomposed))
        #expect(DeviceToken(composed) != DeviceToken(decomposed))
        #expect(InstallationID(composed) != InstallationID(decomposed))
        #expect(Set([AccessToken(composed), AccessToken(decomposed)]).count == 2)
        #expect(Set([InstallationID(composed), InstallationID(decomposed)]).count == 2)
        #expect(AccessToken(composed) == AccessToken(composed))
    }

    @Test func tokensAreComparedAsTheyWereSent() {
        #expect(AccessToken(Self.uuid) != AccessToken(Self.uuid.uppercased()))
        #expect(AccessToken(Self.uuid) != AccessToken(Self.digits))
        #expect(AccessToken("a") != AccessToken("a\0"))
        #expect(AccessToken(Self.uuid).revealed == Self.uuid)
        #expect(AccessToken("").isEmpty && !AccessToken("a").isEmpty)
    }

    @Test func tokensPrintAsRedactedAlsoInsideOfOtherValues() {
        var registration = PushNotificationRegistration()
        registration.deviceToken = DeviceToken("a-device-token")
        registration.accessToken = AccessToken(Self.uuid)
        let notification = PushNotification(
            accessToken: registration.accessToken, chatID: [], publicKey: [], installationID: InstallationID("i"), kind: .message,
            author: [])
        for value in [registration.deviceToken, registration.accessToken, registration, notification, [registration]] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                #expect(text.contains("<redacted>"), "\(text)")
                #expect(!text.contains("a-device-token") && !text.contains(Self.uuid), "\(text)")
                // "a-d" and "9f1" as bytes, with any separators.
                let numbers = text.split { !$0.isNumber }.joined(separator: " ")
                #expect(!numbers.contains("97 45 100") && !numbers.contains("57 102 49"), "\(text)")
            }
        }
    }
}
