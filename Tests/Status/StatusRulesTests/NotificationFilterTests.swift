import StatusProtocol
import TestSupport
import Testing
import WakuCrypto

@testable import StatusRules

/// `PROTOCOL.md`, section 6: the filters of a registrant.
@Suite struct NotificationFilterTests {
    private static let client = TestClient(of: PrivateKey.generate().publicKey)
    private static let chat = Shake256.hash64(Array("the chat".utf8))
    private static let author = Shake256.hash64(Array("the author".utf8))

    enum Setting: CaseIterable {
        case open, disabled, chatBlocked, authorBlocked, chatMuted, authorMuted, mentionsBlocked, mentionsAllowed, mentionsAllowedButBlocked

        func apply(to registration: inout PushNotificationRegistration) {
            switch self {
            case .open: break
            case .disabled:
                registration.enabled = false
                registration.allowedMentionsChatList = [chat]
            case .chatBlocked: registration.blockedChatList = [[1], chat]
            case .authorBlocked:
                registration.blockedChatList = [[1], author]
                registration.allowedMentionsChatList = [chat]
            case .chatMuted: registration.mutedChatList = [[1], chat]
            case .authorMuted: registration.mutedChatList = [author]
            case .mentionsBlocked: registration.blockMentions = true
            case .mentionsAllowed: registration.allowedMentionsChatList = [[1], chat]
            case .mentionsAllowedButBlocked:
                registration.blockMentions = true
                registration.allowedMentionsChatList = [chat]
            }
        }
    }

    private func admits(_ kind: NotificationKind, _ setting: Setting) -> Bool {
        let notification = Self.client.notification(kind) {
            $0.chatID = Self.chat
            $0.author = Self.author
        }
        return NotificationFilter.admits(notification, for: Self.client.registration(setting.apply))
    }

    @Test("An empty entry is no hash: it blocks nothing and allows nothing, also without an author and a chat")
    func emptyEntries() {
        let registration = Self.client.registration {
            $0.blockedChatList = [[]]
            $0.mutedChatList = [[]]
            $0.allowedMentionsChatList = [[]]
        }
        for isNamed in [true, false] {
            func notification(_ kind: NotificationKind) -> PushNotification {
                Self.client.notification(kind) {
                    $0.chatID = isNamed ? Self.chat : []
                    $0.author = isNamed ? Self.author : []
                }
            }
            #expect(NotificationFilter.admits(notification(.message), for: registration))
            #expect(!NotificationFilter.admits(notification(.mention), for: registration))
        }
    }

    @Test(arguments: Setting.allCases)
    func messages(_ setting: Setting) {
        #expect(admits(.message, setting) == ![.disabled, .chatBlocked, .authorBlocked, .chatMuted].contains(setting))
    }

    @Test(arguments: Setting.allCases)
    func mentions(_ setting: Setting) {
        #expect(admits(.mention, setting) == (setting == .mentionsAllowed))
    }

    @Test func mentionsInABlockedOrMutedChatThatIsAllowedAreSent() {
        let mention = Self.client.notification(.mention) { $0.chatID = Self.chat }
        let registration = Self.client.registration {
            $0.allowedMentionsChatList = [Self.chat]
            $0.mutedChatList = [Self.chat]
            $0.blockedChatList = [Self.chat]
        }
        #expect(NotificationFilter.admits(mention, for: registration))
    }

    @Test(arguments: Setting.allCases, [NotificationKind.requestToJoinCommunity, .contactRequest, .init(rawValue: 7), .init(rawValue: -1)])
    func requestsAndUnknownKinds(_ setting: Setting, kind: NotificationKind) {
        #expect(admits(kind, setting) == ![.disabled, .authorBlocked].contains(setting))
    }
}
