import Core
import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

/// Each recorded message parses to the recorded fields, and encoding these gives the same bytes.
@Suite struct RecordedMessagesTests {
    private static let messages = StatusGoVectors.recorded.messages

    @Test func registrations() throws {
        var count = 0
        for sealed in Self.messages.compactMap(\.registration) {
            guard let plain = sealed.plaintext?.bytes, let recorded = sealed.registration else { continue }
            let registration = try PushNotificationRegistration(parsing: plain)
            #expect(registration.tokenType == recorded.tokenType ?? 0)
            #expect(registration.deviceToken.revealed == recorded.deviceToken ?? "")
            #expect(registration.installationID.string == recorded.installationId ?? "")
            #expect(registration.accessToken.revealed == recorded.accessToken ?? "")
            #expect(registration.enabled == recorded.enabled ?? false)
            // The recording rounds values that a Double cannot represent.
            #expect(Double(registration.version) == Double(recorded.version ?? 0))
            #expect(registration.allowedKeyList == (recorded.allowedKeyList ?? []).map(Array.init))
            #expect(registration.blockedChatList == (recorded.blockedChatList ?? []).map(Array.init))
            #expect(registration.unregister == recorded.unregister ?? false)
            #expect(registration.grant == recorded.grant.map(Array.init) ?? [])
            #expect(registration.allowFromContactsOnly == recorded.allowFromContactsOnly ?? false)
            #expect(registration.apnTopic == recorded.apnTopic ?? "")
            #expect(registration.blockMentions == recorded.blockMentions ?? false)
            #expect(registration.allowedMentionsChatList == (recorded.allowedMentionsChatList ?? []).map(Array.init))
            #expect(registration.mutedChatList == (recorded.mutedChatList ?? []).map(Array.init))
            #expect(registration.encoded() == plain)
            count += 1
        }
        #expect(count == 43)
    }

    @Test func recordedRegistrationsSetEveryField() {
        let recorded = Self.messages.compactMap { $0.registration?.registration }
        #expect(recorded.contains { $0.allowedKeyList != nil } && recorded.contains { $0.blockedChatList != nil })
        #expect(recorded.contains { $0.allowedMentionsChatList != nil } && recorded.contains { $0.mutedChatList != nil })
        #expect(recorded.contains { $0.unregister == true } && recorded.contains { $0.blockMentions == true })
        #expect(recorded.contains { $0.allowFromContactsOnly == true } && recorded.contains { Double($0.version ?? 0) == 0x1p63 })
    }

    @Test func sealedRegistrationsOpenWithTheSharedKey() throws {
        var count = 0
        for sealed in Self.messages.compactMap(\.registration) {
            #expect(Shake256.hash64(sealed.ciphertext.bytes) == sealed.requestId.bytes)
            guard let plain = sealed.plaintext?.bytes else { continue }
            let key = try #require(SymmetricKey(bytes: sealed.sharedKey.bytes))
            #expect(try AESGCM.open(sealed.ciphertext.bytes, key: key, layout: .nonceFirst) == plain)
            count += 1
        }
        #expect(count == 44)
    }

    @Test func registrationResponses() throws {
        var count = 0
        for message in Self.messages {
            guard let recorded = message.registrationResponse, let bytes = message.applicationMetadata?.payload?.bytes else { continue }
            let response = try PushNotificationRegistrationResponse(parsing: bytes)
            #expect((response.error == nil) == recorded.success)
            #expect(response.error?.rawValue ?? 0 == recorded.errorCode)
            #expect(response.requestID == recorded.requestId.bytes)
            #expect(response.encoded() == bytes)
            count += 1
        }
        #expect(count > 40)
    }

    @Test func queries() throws {
        var count = 0
        for message in Self.messages {
            guard let recorded = message.query, let bytes = message.applicationMetadata?.payload?.bytes else { continue }
            let query = try PushNotificationQuery(parsing: bytes)
            #expect(query.publicKeys == (recorded.publicKeys ?? []).map(\.bytes))
            #expect(query.encoded() == bytes)
            count += 1
        }
        #expect(count == 11)
    }

    @Test func queryResponses() throws {
        var rowCount = 0
        for message in Self.messages {
            guard let recorded = message.queryResponse, let bytes = message.applicationMetadata?.payload?.bytes else { continue }
            let response = try PushNotificationQueryResponse(parsing: bytes)
            #expect(response.messageID == recorded.messageId.bytes)
            #expect(response.success == recorded.success)
            #expect(response.info.count == recorded.info?.count ?? 0)
            for (row, recorded) in zip(response.info, recorded.info ?? []) {
                #expect(row.accessToken.revealed == recorded.accessToken)
                #expect(row.installationID.string == recorded.installationId)
                #expect(row.publicKey == recorded.publicKey.bytes)
                #expect(row.allowedKeyList == (recorded.allowedKeyList ?? []).map(\.bytes))
                #expect(row.grant == recorded.grant.bytes)
                #expect(row.version == recorded.version)
                #expect(row.serverPublicKey == recorded.serverPublicKey.bytes)
                rowCount += 1
            }
            #expect(response.encoded() == bytes)
        }
        #expect(rowCount == 15)
    }

    @Test func requests() throws {
        var count = 0
        for message in Self.messages {
            guard let recorded = message.request, let bytes = message.applicationMetadata?.payload?.bytes else { continue }
            let request = try PushNotificationRequest(parsing: bytes)
            #expect(request.messageID == recorded.messageId.bytes)
            #expect(request.requests.count == recorded.requests?.count ?? 0)
            for (entry, recorded) in zip(request.requests, recorded.requests ?? []) {
                #expect(entry.accessToken.revealed == recorded.accessToken)
                #expect(entry.chatID == recorded.chatId.bytes)
                #expect(entry.publicKey == recorded.publicKey.bytes)
                #expect(entry.installationID.string == recorded.installationId)
                #expect(entry.message == recorded.message.bytes)
                #expect(entry.kind.rawValue == recorded.type)
                #expect(entry.author == recorded.author.bytes)
                count += 1
            }
            #expect(request.encoded() == bytes)
        }
        #expect(count == 32)
    }

    @Test func responses() throws {
        var count = 0
        for message in Self.messages {
            guard let recorded = message.response, let bytes = message.applicationMetadata?.payload?.bytes else { continue }
            let response = try PushNotificationResponse(parsing: bytes)
            #expect(response.messageID == recorded.messageId.bytes)
            #expect(response.reports.count == recorded.reports?.count ?? 0)
            for (report, recorded) in zip(response.reports, recorded.reports ?? []) {
                #expect((report.error == nil) == recorded.success)
                #expect(report.error?.rawValue ?? 0 == recorded.errorCode)
                #expect(report.publicKey == recorded.publicKey.bytes)
                #expect(report.installationID.string == recorded.installationId)
                count += 1
            }
            #expect(response.encoded() == bytes)
        }
        #expect(count == 26)
    }
}
