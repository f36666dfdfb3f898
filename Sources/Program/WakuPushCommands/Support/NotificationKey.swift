import Core

/// The keys of an entry of `notifications`: selectors first, then settings.
enum NotificationKey: String, CaseIterable {
    case platforms
    case kinds
    case apps
    case endpoints
    case protocols

    case title
    case body
    case titleLocKey = "title-loc-key"
    case locKey = "loc-key"
    case sound
    case badge
    case category
    case channel
    case mutableContent = "mutable-content"
    case interruptionLevel = "interruption-level"
    case priority
    case timeToLive = "ttl"
    case collapse
    case thread
    case development
    case deepLink = "deep-link"
    case reportTag = "bi-tag"

    var isSelector: Bool {
        switch self {
        case .platforms, .kinds, .apps, .endpoints, .protocols: true
        default: false
        }
    }

    /// The platforms on which the setting has an effect.
    var platforms: Set<Platform> {
        switch self {
        case .badge, .category, .interruptionLevel, .development: [.apn]
        case .thread: [.apn, .huawei]
        case .mutableContent: [.apn, .firebase]
        case .channel: [.firebase, .huawei]
        case .reportTag: [.huawei]
        case .collapse: Set(Platform.allCases)
        default: Set(Platform.ofGorush)
        }
    }

    /// Whether the setting does not change texts or data, so that it applies to Session as well.
    var isOfDelivery: Bool {
        switch self {
        case .timeToLive, .collapse, .reportTag: true
        default: false
        }
    }
}
