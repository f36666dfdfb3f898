import TestSupport

/// How a round is to go, drawn at random.
struct KillPlan {
    let phase: KillPhase
    /// 0…1, of the time that its phase takes at most.
    let moment: Double
    /// Which of the replies, or answers, it is to follow.
    let count: Int
    let mood: GorushStandIn.Mood
    /// Stopped without having got ready.
    let isHasty: Bool
    /// The network keeps nothing for the next daemon: what that one knows, it knows from its disk.
    let forgets: Bool

    init(using generator: inout SeededGenerator) {
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<20: phase = .startUp
        case ..<42: phase = .load
        case ..<62: phase = .delivery
        case ..<72: phase = .answer
        case ..<92: phase = .shutDown
        default: phase = .stop
        }
        moment = Double.random(in: 0...1, using: &generator)
        count = Int.random(in: 1...10, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<60: mood = .well(0...10)
        case ..<80: mood = .well(20...400)
        default: mood = .failing
        }
        isHasty = phase == .shutDown && Int.random(in: 0..<5, using: &generator) == 0
        forgets = Int.random(in: 0..<4, using: &generator) == 0
    }
}
