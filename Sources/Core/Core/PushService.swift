/// The notification service of a Session device, as named by `service` in a subscription. A gorush endpoint may list the services that it handles.
public enum PushService: String, Hashable, Sendable, CaseIterable, Codable {
    case apns
    case apnsSandbox = "apns-sandbox"
    case firebase
    case huawei
    /// Posted by the node itself, not by gorush.
    case webPush = "webpush"

    /// The services that gorush posts to.
    package static let ofGorush: [PushService] = [.apns, .apnsSandbox, .firebase, .huawei]

    package var isApple: Bool { self == .apns || self == .apnsSandbox }

    package var platform: Platform {
        switch self {
        case .apns, .apnsSandbox: .apn
        case .firebase: .firebase
        case .huawei: .huawei
        case .webPush: .webPush
        }
    }
}
