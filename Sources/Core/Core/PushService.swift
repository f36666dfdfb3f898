/// The notification service of a Session device, as `service` of a subscription names it. A gorush endpoint may name those that it serves.
package enum PushService: String, Hashable, Sendable, CaseIterable, Codable {
    case apns
    case apnsSandbox = "apns-sandbox"
    case firebase
    case huawei

    package var isApple: Bool { self == .apns || self == .apnsSandbox }

    package var platform: Platform {
        switch self {
        case .apns, .apnsSandbox: .apn
        case .firebase: .firebase
        case .huawei: .huawei
        }
    }
}
