import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@Suite struct LimitTests {
    private static var lists: [WritableKeyPath<PushNotificationRegistration, [[UInt8]]>] {
        [\.allowedKeyList, \.blockedChatList, \.allowedMentionsChatList, \.mutedChatList]
    }

    @Test(arguments: 0..<4)
    func aListHasThirtyThousandEntriesAtMost(_ index: Int) throws {
        let path = Self.lists[index]
        var registration = PushNotificationRegistration()
        registration[keyPath: path] = (0..<30_000).map { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        #expect(try PushNotificationRegistration(parsing: registration.encoded()) == registration)
        registration[keyPath: path].append([])
        #expect(throws: ProtobufError.tooMany) { try PushNotificationRegistration(parsing: registration.encoded()) }
    }

    @Test func allListsMayBeFullAtOnce() throws {
        var registration = PushNotificationRegistration()
        // A new list belongs into `lists`: parsing must limit it, and `listByteCount` charge it. (An empty array can be cast to an array of anything.)
        #expect(Mirror(reflecting: registration).children.count { type(of: $0.value) == [[UInt8]].self } == Self.lists.count)
        for list in Self.lists { registration[keyPath: list] = Array(repeating: [1], count: 30_000) }
        #expect(registration.listByteCount == Self.lists.count * 30_000 * 33)
        #expect(try PushNotificationRegistration(parsing: registration.encoded()) == registration)
    }

    /// Field numbers of a registration's strings.
    @Test(arguments: [UInt8(2), 3, 4, 12])
    func aStringHas4096BytesAtMost(_ number: UInt8) throws {
        let most = [number << 3 | 2] + hex("8020") + [UInt8](repeating: 0x61, count: 4096)
        let more = [number << 3 | 2] + hex("8120") + [UInt8](repeating: 0x61, count: 4097)
        #expect(try PushNotificationRegistration(parsing: most).encoded() == most)
        #expect(throws: ProtobufError.tooMany) { try PushNotificationRegistration(parsing: more) }
    }

    @Test func otherFieldsOfARegistrationHaveAnEnd() throws {
        let most = [[UInt8]](repeating: hex("980601"), count: 256).flatMap { $0 }
        #expect(try PushNotificationRegistration(parsing: most) == PushNotificationRegistration())
        #expect(throws: ProtobufError.tooMany) { try PushNotificationRegistration(parsing: most + hex("3001")) }
    }

    @Test func aQueryHasAThousandKeysAtMost() throws {
        let hash = KeyHash(of: PrivateKey.generate().publicKey)
        let most = PushNotificationQuery(publicKeys: Array(repeating: hash, count: 1000))
        #expect(try PushNotificationQuery(parsing: most.encoded()) == most)
        let more = PushNotificationQuery(publicKeys: Array(repeating: hash, count: 1001))
        #expect(throws: ProtobufError.tooMany) { try PushNotificationQuery(parsing: more.encoded()) }
    }

    @Test func aRequestHasAThousandNotificationsAtMost() throws {
        let entry = TestClient(of: PrivateKey.generate().publicKey).notification()
        let most = PushNotificationRequest(requests: Array(repeating: entry, count: 1000), messageID: [1])
        #expect(try PushNotificationRequest(parsing: most.encoded()) == most)
        let more = PushNotificationRequest(requests: Array(repeating: entry, count: 1001), messageID: [1])
        #expect(throws: ProtobufError.tooMany) { try PushNotificationRequest(parsing: more.encoded()) }
    }

    /// Each field of two bytes would cost 56 of memory.
    @Test func rowsHaveAnEndTogetherAsWell() throws {
        let row = hex("0a8804") + [[UInt8]](repeating: hex("2200"), count: 260).flatMap { $0 }
        let rows = { (count: Int) in [[UInt8]](repeating: row, count: count).flatMap { $0 } }
        #expect(try PushNotificationQueryResponse(parsing: rows(461)).info.count == 461)
        #expect(throws: ProtobufError.tooMany) { try PushNotificationQueryResponse(parsing: rows(462)) }
        #expect(throws: ProtobufError.tooMany) { try ContactCodeAdvertisement(parsing: rows(462)) }
        #expect(throws: ProtobufError.tooMany) { try V01.QueryResponse(parsing: rows(462)) }
        let short = hex("0a7e") + [[UInt8]](repeating: hex("7800"), count: 63).flatMap { $0 }
        #expect(throws: ProtobufError.tooMany) {
            try V01.ContactCodeAdvertisement(parsing: [[UInt8]](repeating: short, count: 1906).flatMap { $0 })
        }
    }

    @Test func rowsOfAStrangersAdvertisementAreNotParsed() throws {
        let (owner, stranger) = (PrivateKey.generate(), PrivateKey.generate())
        let row = PushNotificationQueryInfo(
            accessToken: AccessToken("x"), installationID: InstallationID("i"), publicKey: [1], allowedKeyList: [], grant: [2], version: 3,
            serverPublicKey: [4])
        let data = SignedAdvertisement.encode(.init(pushNotificationInfo: [row]), from: InstallationID("i"), signedBy: stranger)
        #expect(try SignedAdvertisement(parsing: data).advertisement.pushNotificationInfo == [row])
        #expect(try SignedAdvertisement(parsing: data, of: stranger.publicKey).advertisement.pushNotificationInfo == [row])
        let signed = try SignedAdvertisement(parsing: data, of: owner.publicKey)
        #expect(signed.owner == stranger.publicKey && signed.advertisement.pushNotificationInfo.isEmpty)
        let info = [V01.AdvertisementInfo(publicKey: [1], accessToken: AccessToken(""), installationID: InstallationID("i"))]
        let envelope = V01.Envelope.encode(
            .contactCodeAdvertisement, payload: V01.ContactCodeAdvertisement(info: info).encoded(), signedBy: stranger)
        #expect(try V01.SignedAdvertisement(parsing: envelope).advertisement.info == info)
        let former = try V01.SignedAdvertisement(parsing: envelope, of: owner.publicKey)
        #expect(former.owner == stranger.publicKey && former.advertisement.info.isEmpty)
    }

    @Test func manyFieldsInOneNotificationAreTooMany() {
        let notification = [[UInt8]](repeating: hex("3001"), count: 65).flatMap { $0 }
        #expect(throws: ProtobufError.tooMany) { try PushNotificationRequest(parsing: hex("0a8201") + notification) }
    }

    /// The largest version, and the largest numbers of an enumeration.
    @Test func numbersComeBackAtTheEndsOfTheirRange() throws {
        var registration = PushNotificationRegistration()
        registration.version = .max
        registration.tokenType = 0x7FFF_FFFF
        #expect(try PushNotificationRegistration(parsing: registration.encoded()) == registration)
        #expect(registration.platform == nil)
        let client = TestClient(of: PrivateKey.generate().publicKey)
        for kind in [Int32.max, -1, .min].map(NotificationKind.init) {
            let request = PushNotificationRequest(requests: [client.notification(kind)], messageID: [1])
            #expect(try PushNotificationRequest(parsing: request.encoded()) == request)
        }
    }

    @Test func aNULEndsNoString() throws {
        var registration = PushNotificationRegistration()
        registration.deviceToken = DeviceToken("\0a\0b")
        registration.installationID = InstallationID("i\0")
        registration.accessToken = AccessToken("t\0t")
        registration.apnTopic = "im\0status"
        #expect(try PushNotificationRegistration(parsing: registration.encoded()) == registration)
        let client = TestClient(of: PrivateKey.generate().publicKey, installationID: InstallationID("a\0b"), accessToken: AccessToken("\0"))
        let request = PushNotificationRequest(requests: [client.notification()], messageID: [0])
        #expect(try PushNotificationRequest(parsing: request.encoded()) == request)
    }

    /// A lone continuation byte, an overlong form, a surrogate, a code point above U+10FFFF, and a truncated one.
    @Test(arguments: ["80", "c080", "eda080", "f4908080", "e282"])
    func stringsThatAreNotUTF8AreRefused(_ digits: String) {
        let text = hex(digits)
        for number: UInt8 in [2, 3, 4, 12] {
            let field = [number << 3 | 2, UInt8(text.count)] + text
            #expect(throws: ProtobufError.notUTF8) { try PushNotificationRegistration(parsing: field) }
        }
        // access_token and installation_id of a notification, installation_id of a report, and both of a row.
        let nested = { (number: UInt8) in [number << 3 | 2, UInt8(text.count)] + text }
        for number: UInt8 in [1, 4] {
            let entry = nested(number)
            #expect(throws: ProtobufError.notUTF8) { try PushNotificationRequest(parsing: [0x0a, UInt8(entry.count)] + entry) }
        }
        let report = nested(4)
        #expect(throws: ProtobufError.notUTF8) { try PushNotificationResponse(parsing: [0x12, UInt8(report.count)] + report) }
        for number: UInt8 in [1, 2] {
            let row = nested(number)
            #expect(throws: ProtobufError.notUTF8) { try PushNotificationQueryResponse(parsing: [0x0a, UInt8(row.count)] + row) }
        }
    }

    @Test(arguments: ["é", "中", "😀"]) func stringsOfOtherScriptsAreRead(_ text: String) throws {
        let reports = [PushNotificationReport(error: nil, publicKey: [1], installationID: InstallationID(text))]
        let response = PushNotificationResponse(messageID: [0], reports: reports)
        #expect(try PushNotificationResponse(parsing: response.encoded()).reports == reports)
    }

    @Test func aWrongWireTypeIsMalformed() {
        // The version encoded as bytes; a list encoded as a number.
        for digits in ["320101", "3801"] {
            #expect(throws: ProtobufError.malformed) { try PushNotificationRegistration(parsing: hex(digits)) }
        }
    }
}
