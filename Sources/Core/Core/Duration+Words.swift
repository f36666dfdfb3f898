extension Duration {
    /// `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`.
    package var inWords: String {
        let seconds = max(0, components.seconds)
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }
}
