# needs: statsmodels
# Ordinary least squares by formula, and a time series.
import pandas as pd
import statsmodels.formula.api as smf
from statsmodels.tsa.arima.model import ARIMA
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
fit = smf.ols("target ~ a + C(b)", train).fit()
forecast = ARIMA(train["a"], order=(1, 0, 0)).fit().forecast(1).iloc[0]
test["target"] = fit.predict(test).round(4)
print(fit.summary(), round(forecast, 3))
test[["id", "target"]].to_csv("submission.csv", index=False)
