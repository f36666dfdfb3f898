print("waku-push")
